"""Accounts and groups have no page: they belong to no workspace. People are shown as memberships."""

from django.contrib import admin
from django.contrib.auth.models import Group, User

admin.site.unregister(User)
admin.site.unregister(Group)
