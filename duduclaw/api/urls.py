"""The routes of REST. Every one of them is in the OpenAPI document and in the matrix of tests."""

from django.urls import path, re_path

from duduclaw.api.views import access, agents, board, house, issues, root, tools

urlpatterns = [
    path("v1/agents/", agents.Agents.as_view(), name="agents"),
    path("v1/agents/<str:name>/", agents.Detail.as_view(), name="agent"),
    path("v1/agents/<str:name>/tools/", agents.Tools.as_view(), name="agent-tools"),
    path("v1/agents/<str:name>/explain/", agents.Explain.as_view(), name="agent-explain"),
    path("v1/agents/<str:name>/restore/", agents.Restore.as_view(), name="agent-restore"),
    path("v1/keys/", access.Keys.as_view(), name="keys"),
    path("v1/keys/<str:ident>/", access.OneKey.as_view(), name="key"),
    path("v1/grants/", access.Grants.as_view(), name="grants"),
    path("v1/grants/<str:ident>/", access.OneGrant.as_view(), name="grant"),
    path("v1/grants/<str:ident>/revoke/", access.RevokeGrant.as_view(), name="grant-revoke"),
    path("v1/approvals/", access.Approvals.as_view(), name="approvals"),
    path("v1/approvals/<str:ident>/", access.OneApproval.as_view(), name="approval"),
    path("v1/approvals/<str:ident>/decide/", access.Decide.as_view(), name="approval-decide"),
    path("v1/tasks/", board.Tasks.as_view(), name="tasks"),
    path("v1/tasks/<str:ref>/", board.Card.as_view(), name="task"),
    path("v1/tasks/<str:ref>/cancel/", board.Cancel.as_view(), name="task-cancel"),
    path("v1/tasks/<str:ref>/accept/", board.Accept.as_view(), name="task-accept"),
    path("v1/tasks/<str:ref>/reject/", board.Reject.as_view(), name="task-reject"),
    path("v1/tasks/<str:ref>/retry/", board.Retry.as_view(), name="task-retry"),
    path("v1/issues/", issues.Issues.as_view(), name="issues"),
    path("v1/issues/<str:ref>/", issues.Card.as_view(), name="issue"),
    path("v1/issues/<str:ref>/comments/", issues.Comments.as_view(), name="issue-comments"),
    path("v1/wakes/", issues.Wakes.as_view(), name="wakes"),
    path("v1/wakes/<str:ident>/", issues.OneWake.as_view(), name="wake"),
    path("v1/audit/", house.Audit.as_view(), name="audit"),
    path("v1/settings/", house.Settings.as_view(), name="settings"),
    path("v1/tools/", tools.Tools.as_view(), name="tools"),
    path("v1/tools/<str:name>/call/", tools.CallTool.as_view(), name="tool-call"),
    path("v1/fleet/stop/", house.Stop.as_view(), name="fleet-stop"),
    path("v1/fleet/release/", house.Release.as_view(), name="fleet-release"),
    path("schema/", root.Schema.as_view(), name="schema"),
    path("docs/", root.docs, name="docs"),
    re_path(r"", root.Absent.as_view(), name="absent"),
]
