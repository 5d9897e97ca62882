import { type HeaderFields, toUtf8 } from "../http/index.ts";
import { serverSentEvents } from "../protocols/index.ts";

/** Maximum characters in a progress notification's message. People read such messages while they wait. */
const progressMax = 1_000;

const events = serverSentEvents(false);

/** Header fields for a response in Server-Sent Events. */
export const eventFields: HeaderFields = ["content-type", events.contentType, ...events.fields];

/** The bytes that keep an idle response open. */
export const heartbeat: Uint8Array | undefined = events.heartbeat;

/** Returns an event without `retry`, because clients cannot resume a call. */
export function event(json: string): Uint8Array {
  return toUtf8(events.message(json, 1));
}

/** Returns a progress notification. @param token - the token's JSON text as the client has sent it */
export function progressEvent(token: string, progress: number, text: string): Uint8Array {
  const message = text.length > progressMax ? `${text.slice(0, progressMax).toWellFormed()}…` : text;
  const params = `{"progressToken":${token},"progress":${progress},"message":${JSON.stringify(message)}}`;
  return event(`{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}`);
}
