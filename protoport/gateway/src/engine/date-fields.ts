import { type HeaderFields, prepareHeaderFields } from "../http/index.ts";

/** The second for which the Date field was formatted. All servers in the process share the field. */
let dateSecond = 0;
let date: HeaderFields = [];

/** Returns the Date field. A server with a clock sends this field with each response (RFC 9110 §6.6.1). */
export function dateFields(): HeaderFields {
  const nowS = Math.trunc(Date.now() / 1000);
  if (nowS !== dateSecond) {
    dateSecond = nowS;
    date = prepareHeaderFields("date", new Date(nowS * 1000).toUTCString());
  }
  return date;
}
