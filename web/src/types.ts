// What reads answer that docs/openapi.json doesn't describe field by field.
export interface Turn {
	id: string; status: string; outcome?: string; code?: string; reason?: string; summary?: string;
	submitted?: string; started?: string; ended?: string; steps?: number; calls?: number; mode?: string;
}
export interface Thread { id: string; turn?: Turn; queue?: Turn[]; last?: string; flying?: string[]; depth?: number }
export interface Asked { id: string; kind: string; tool?: string; prompt?: string; until: string; asked?: string }
export interface Session {
	id: string; workspace?: string; title?: string; tags?: string[]; archived?: boolean; created?: string; updated?: string;
	mode?: string; provider?: string; model?: string; forkedFrom?: { session?: string }; threads?: Thread[]; actions?: Asked[];
	files?: { path: string; op: string; at?: string }[];
	counts: { events: number; turns?: number; steps?: number; calls?: number; files?: number };
	cost?: { microUsd?: number; priced?: number; unpriced?: number }; tokens?: number; position: number;
}
export interface Sessions { position: number; sessions: Session[]; more: boolean; total: number; next?: string }
export interface Found { hits?: { sessionId: string; title?: string; updated: string; eventId?: string; excerpt?: string }[] }
export interface Item {
	itemId: string; kind: string; state: string; status?: string; threadId?: string; turnId?: string; stepId?: string; toolCallId?: string;
	actionId?: string; name?: string; text?: string; args?: string; detail?: string; plan?: { text?: string; step?: string; status: string }[];
	decided?: "rule" | "person"; content?: { digest: string; size?: number }; edit?: { by: string; args?: string }; position?: number;
	startedAt?: string; completedAt?: string; firstEventId: string; lastEventId: string; begunBefore?: boolean;
}
export interface Fact {
	type: string; eventId: string; timestamp: string; sequence: number; stream: string; payload: any;
	turnId?: string; stepId?: string; toolCallId?: string; actionId?: string; threadId?: string;
}
export interface Page { items?: Item[]; events?: any[]; older: string; newer: string; moreOlder: boolean; moreNewer: boolean; sessionId: string }
