// What reads answer that docs/openapi.json doesn't describe field by field.
export type { Found, SessionListed as Session, Sessions, ViewThread as Thread, ViewTurn as Turn } from "./api.gen";
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
