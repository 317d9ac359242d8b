"""Django's admin with our own site in place of the default one."""

from django.contrib.admin.apps import AdminConfig


class DuduclawAdminConfig(AdminConfig):
    """Stands in INSTALLED_APPS instead of `django.contrib.admin`; `admin.site` is then ours everywhere."""

    default_site = "duduclaw.adminsite.Site"
