// The pages: a file and a line each.
import type { ComponentType } from "preact";
import type { IconName } from "../ui";
import { Access } from "./access";
import { Approvals } from "./approvals";
import { Overview } from "./overview";
import { Policies } from "./policies";
import { Sessions } from "./sessions";

export interface Place {
	path: string;
	icon: IconName;
	title: string;
	key: string; // after g
	page: ComponentType<{ id: string }>;
	waits?: boolean; // its entry has the number of open questions
}

export const places: Place[] = [
	{ path: "/", icon: "layout-dashboard", title: "Overview", key: "o", page: Overview },
	{ path: "/sessions", icon: "list", title: "Sessions", key: "s", page: Sessions },
	{ path: "/approvals", icon: "inbox", title: "Approvals", key: "a", page: Approvals, waits: true },
	{ path: "/policies", icon: "shield", title: "Rules", key: "p", page: Policies },
	{ path: "/access", icon: "key-round", title: "Access", key: "t", page: Access },
];
