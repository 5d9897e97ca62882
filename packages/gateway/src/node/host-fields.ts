import type { OutgoingHttpHeaders } from "node:http";
import { notFromHost, readHeaderField } from "../exchange/index.ts";

/** A response of node, on which the host may have set header fields before the gateway got it. */
export interface HostResponse {
  getHeaderNames(): string[];
  getHeaders(): OutgoingHttpHeaders;
}

/** The response where no host has set fields on one. */
export const noHost: HostResponse = { getHeaderNames: () => [], getHeaders: () => ({}) };

/**
 * Returns the header fields to send for a response of a mounted gateway: those that the host, such as Express and its
 * middleware, has set on it, then the gateway's own.
 *
 * A field of the gateway replaces the host's of that name, except for `vary` and `set-cookie`, of which both are sent. The
 * host's fields that describe a message are left out, because they cannot fit the gateway's.
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
