import { type HeaderFields, prepareHeaderFields } from "../exchange/index.ts";

/**
 * The Date field of the current second, shared by all servers of the process, so that it is formatted once a second.
 */
let dateSecond = 0;
let date: HeaderFields = [];

/** Returns the Date field, which a server with a clock sends with each response (RFC 9110 §6.6.1). */
export function dateFields(): HeaderFields {
  const second = Math.trunc(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    date = prepareHeaderFields("date", new Date(second * 1000).toUTCString());
  }
  return date;
}
