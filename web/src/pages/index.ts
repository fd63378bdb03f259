// The pages: a file and a line each.
import { computed } from "@preact/signals";
import type { ComponentType } from "preact";
import { described } from "../api";
import type { IconName } from "../ui";
import { Access } from "./access";
import { Approvals } from "./approvals";
import { Costs } from "./costs";
import { Health } from "./health";
import { Overview } from "./overview";
import { Policies } from "./policies";
import { Programs } from "./programs";
import { Sessions } from "./sessions";
import { Settings } from "./settings";

export interface Place {
	path: string;
	icon: IconName;
	title: string;
	key: string; // after g
	page: ComponentType<{ id: string }>;
	group: string;
	needs: string; // the path without which the server has nothing to show
	waits?: boolean; // its entry has the number of open questions
}

const all: Place[] = [
	{ path: "/", group: "Work", needs: "/v1/overview", icon: "layout-dashboard", title: "Overview", key: "o", page: Overview },
	{ path: "/sessions", group: "Work", needs: "/v1/sessions", icon: "list", title: "Sessions", key: "s", page: Sessions },
	{ path: "/approvals", group: "Work", needs: "/v1/actions", icon: "inbox", title: "Approvals", key: "a", page: Approvals, waits: true },
	{ path: "/programs", group: "Work", needs: "/v1/programs", icon: "terminal", title: "Programs", key: "r", page: Programs },
	{ path: "/policies", group: "Govern", needs: "/v1/commands/list_rules", icon: "shield", title: "Rules", key: "p", page: Policies },
	{ path: "/costs", group: "Govern", needs: "/v1/usage", icon: "coins", title: "Costs", key: "c", page: Costs },
	{ path: "/health", group: "Machine", needs: "/v1/commands/doctor", icon: "heart-pulse", title: "Health", key: "h", page: Health },
	{ path: "/access", group: "Machine", needs: "/v1/caller", icon: "key-round", title: "Access", key: "t", page: Access },
	{ path: "/settings", group: "Machine", needs: "/v1/commands/show_settings", icon: "settings", title: "Settings", key: "e", page: Settings },
];

/** The pages for which the server has what they need. */
export const places = computed(() => all.filter((p) => !described.value || described.value.has(p.needs)));
