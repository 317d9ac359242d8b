"""All settings, read once from the environment. A bad value stops the start with one line."""

import contextlib
import hashlib
import secrets
from pathlib import Path
from typing import Any

import dj_database_url

from duduclaw.lib import valkey
from duduclaw.lib.env import BadSetting, env, env_bool, env_choice, env_int, env_list, env_origins

BASE_DIR = Path(__file__).resolve().parent.parent
SHORTEST_SECRET = 32  # characters
HOME = Path(env("DUDUCLAW_HOME", str(BASE_DIR / "var"))).absolute()


def prepare_home(home: Path) -> None:
    """Create the state directory, readable by its owner alone."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = home / f".probe-{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise BadSetting(
            f"DUDUCLAW_HOME: cannot write {home}: {error.strerror}; point it at a directory that this user can write"
        ) from error


def secret(name: str) -> str:
    """A secret kept in a file of the state directory, made on first use."""
    path = HOME / name
    try:
        if not path.exists():
            write_once(path, secrets.token_hex(32))
        kept = path.read_bytes().strip()
    except OSError as error:
        raise BadSetting(f"{path}: {error.strerror}; let this user read it") from error
    if len(kept) < SHORTEST_SECRET or not kept.isalnum():
        raise BadSetting(
            f"{path}: damaged; restore it from a backup (a new one ends sessions and breaks the audit's MACs)"
        )
    return kept.decode("ascii")


def write_once(path: Path, text: str) -> None:
    """Create a file whole and for this user alone; when another process was first, its content counts."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    draft.touch(mode=0o600)
    draft.write_text(text, encoding="ascii")
    with contextlib.suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()


def database(url: str) -> dict[str, Any]:
    """The DATABASES entry for `DATABASE_URL`; SQLite and PostgreSQL only."""
    try:
        parsed = dict(dj_database_url.parse(url, conn_max_age=None))
    except (ValueError, dj_database_url.ParseError) as error:
        raise BadSetting(f"DATABASE_URL: {error}; use sqlite:///path or postgres://user@host/name") from error
    engine = parsed["ENGINE"]
    if engine == "django.db.backends.sqlite3":
        parsed["ENGINE"] = "duduclaw.lib.sqlite"
        parsed["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
        }
    elif engine != "django.db.backends.postgresql":
        raise BadSetting("DATABASE_URL: only sqlite:// and postgres:// are supported")
    return parsed


prepare_home(HOME)
SECRET_KEY = env("DUDUCLAW_SECRET_KEY") or secret("secret-key")
AUDIT_KEY = hashlib.sha256(b"audit:" + SECRET_KEY.encode()).digest()
KEY_ENVIRONMENT = env_choice("DUDUCLAW_KEY_ENVIRONMENT", "live", ("live", "test"))
DEBUG = env_bool("DUDUCLAW_DEBUG", False)
TESTING = False

HOST = env("HOST", "127.0.0.1")
PORT = env_int("PORT", 8000, 1, 65535)
ALLOWED_HOSTS = env_list("DUDUCLAW_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
ALLOWED_ORIGINS = env_origins("DUDUCLAW_ALLOWED_ORIGINS")
CSRF_TRUSTED_ORIGINS = ALLOWED_ORIGINS

DATABASES = {"default": database(env("DATABASE_URL", f"sqlite:///{HOME / 'duduclaw.sqlite3'}"))}
ON_SQLITE = DATABASES["default"]["ENGINE"] == "duduclaw.lib.sqlite"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

EMBEDDED_VALKEY = not env("REDIS_URL")
REDIS_URL = env("REDIS_URL") or f"unix://{valkey.socket_path(HOME)}?db=0"
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [valkey.layer_url(REDIS_URL)], "prefix": "ddc"},
    }
}
CELERY_BROKER_URL = valkey.broker_url(REDIS_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 1800,
    "unacked_restore_throttle": 1,
    "unacked_restore_interval": 5,
}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(HOME / "beat-schedule")

INSTALLED_APPS = [
    "duduclaw.adminapp.DuduclawAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "django_filters",
    "channels",
    "duduclaw",
    "agents",
    "tasks",
    "mcp",
    "duduclaw.knowledge",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "duduclaw.statics.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
        "object-src": ["'none'"],
    }
}
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True

ROOT_URLCONF = "duduclaw.urls"
ASGI_APPLICATION = "duduclaw.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
FORMAT_MODULE_PATH = ["duduclaw.formats"]

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["duduclaw.api.auth.KeyAuthentication", "duduclaw.api.auth.PersonAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["duduclaw.api.auth.IsOperator"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["duduclaw.api.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "duduclaw.api.errors.handler",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "DuDuClaw",
    "DESCRIPTION": "Agents, their rights, the board and the record.",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [],
}

LOG_LEVEL = env_choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "duduclaw.lib.logs.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    # The scheduler sends something every second: at INFO only what goes wrong is told.
    "loggers": {"celery": {"level": "WARNING" if LOG_LEVEL == "INFO" else LOG_LEVEL}},
}

SENTRY_DSN = env("SENTRY_DSN")

TASK_LEASE_SECONDS = env_int("DUDUCLAW_TASK_LEASE_SECONDS", 300, 1, 86_400)
