import { type HeaderFields, prepareHeaderFields } from "../exchange/index.ts";

/**
 * The Date field for the current second, shared by all servers in the process, so that it is formatted once a second.
 */
let dateSecond = 0;
let date: HeaderFields = [];

/** Returns the Date field, which a server with a clock sends with each response (RFC 9110 §6.6.1). */
export function dateFields(): HeaderFields {
  const nowS = Math.trunc(Date.now() / 1000);
  if (nowS !== dateSecond) {
    dateSecond = nowS;
    date = prepareHeaderFields("date", new Date(nowS * 1000).toUTCString());
  }
  return date;
}
