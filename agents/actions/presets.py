"""Role presets: what `allowed_tools` a new agent of that kind starts with. At most 40 names each."""

LARGEST = 40
BOARD = (
    "tasks_list",
    "tasks_create",
    "tasks_update",
    "tasks_claim",
    "tasks_renew",
    "tasks_complete",
    "tasks_block",
    "activity_post",
    "activity_list",
)
STATE = ("working_state_get", "working_state_set", "working_state_clear", "working_state_handoff")
ORGANISATION = ("list_agents", "agent_status", "capability_request", "emergency_stop")
ISSUES = ("list_issues", "get_issue", "list_comments", "create_issue", "comment_issue")
PRESETS: dict[str, tuple[str, ...]] = {
    "lead": (*BOARD, *STATE, *ORGANISATION, *ISSUES, "update_issue", "assign_issue_to_agent"),
    "researcher": (*BOARD, *STATE, *ORGANISATION, *ISSUES),
    "worker": (*BOARD, *STATE, *ORGANISATION, "list_issues", "get_issue", "list_comments"),
}
