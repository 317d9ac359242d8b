"""Step-up: the password again, at most 15 minutes ago, before a browser session decides or makes keys.

Keys never pass here: a key is its own proof. The time is kept in the session, signed and bound to the user.
"""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.auth import authenticate, logout
from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from duduclaw.lib import clock

FRESH = timedelta(minutes=15)
WRONG = 5  # wrong passwords that end the session
MARK, FAILURES, SALT = "step_up", "step_up_failures", "duduclaw.stepup"


class PasswordForm(forms.Form):
    """One field."""

    password = forms.CharField(strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}))


def fresh(request: HttpRequest) -> bool:
    """Whether this person gave the password within the last 15 minutes in this session."""
    try:
        mark = signing.loads(request.session.get(MARK, ""), salt=SALT)
        at = datetime.fromisoformat(mark["at"])
    except (signing.BadSignature, KeyError, TypeError, ValueError):
        return False
    return mark.get("user") == request.user.pk and timedelta() <= clock.now() - at < FRESH


def mark(request: HttpRequest) -> None:
    """Write down that the password was given now."""
    stamp = {"user": request.user.pk, "at": clock.now().isoformat()}
    request.session[MARK] = signing.dumps(stamp, salt=SALT)
    request.session.pop(FAILURES, None)


def ask(request: HttpRequest, back: str) -> HttpResponseRedirect:
    """To the password page, and from there to the path `back` of this site."""
    return HttpResponseRedirect(f"{reverse('admin:step_up')}?{urlencode({'next': back})}")


@sensitive_post_parameters("password")
@never_cache
def view(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """Show the form, or check the password and go on."""
    back = request.POST.get("next") or request.GET.get("next") or ""
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        back = reverse("admin:index")
    form = PasswordForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        if right(request, form.cleaned_data["password"]):
            mark(request)
            return HttpResponseRedirect(back)
        if count_failure(request) >= WRONG:
            logout(request)
            return redirect("admin:login")
        form.add_error("password", "This is not your password.")
    return TemplateResponse(request, "admin/step_up.html", {**context, "form": form, "next": back})


def right(request: HttpRequest, password: str) -> bool:
    """Whether the password is the signed-in person's own."""
    found = authenticate(request, username=request.user.get_username(), password=password)
    return found is not None and found.pk == request.user.pk


def count_failure(request: HttpRequest) -> int:
    """One more wrong password in this session."""
    failures = int(request.session.get(FAILURES, 0)) + 1
    request.session[FAILURES] = failures
    return failures
