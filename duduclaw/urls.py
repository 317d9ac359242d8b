"""Every address that Django serves; `/mcp`, `/tools` and `/ws/mcp/` are in `asgi.py`."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("duduclaw.api.urls")),
]
