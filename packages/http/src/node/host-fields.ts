import type { OutgoingHttpHeaders } from "node:http";
import { notFromHost, readHeaderField } from "../exchange/index.ts";

/** A node response that a host passes to the gateway. The host may have set header fields on the response. */
export interface HostResponse {
  getHeaderNames(): string[];
  getHeaders(): OutgoingHttpHeaders;
}

/** An empty response, for requests that do not come from a host. */
export const noHost: HostResponse = { getHeaderNames: () => [], getHeaders: () => ({}) };

/**
 * Returns the header fields for a mounted gateway's response: those that the host, such as Express, has set, then the
 * gateway's. A gateway field replaces the host's field with the same name, except for `vary` and `set-cookie`. Host
 * fields that describe a body are left out, because the body comes from the gateway.
 */
export function withHostFields(response: HostResponse, own: string[]): string[] {
  if (response.getHeaderNames().length === 0) return own;
  const fields: string[] = [];
  for (const [name, value] of Object.entries(response.getHeaders())) {
    const isReplaced = !sentTwice.has(name) && readHeaderField(own, name) !== null;
    if (value === undefined || isReplaced || notFromHost.has(name)) continue;
    for (const line of [value].flat()) fields.push(name, String(line));
  }
  return [...fields, ...own];
}

const sentTwice: ReadonlySet<string> = new Set(["set-cookie", "vary"]);
