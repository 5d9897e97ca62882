import type { OutgoingHttpHeaders } from "node:http";
import { fieldsNotCopiedFromFramework, readHeaderField } from "../exchange/index.ts";

/** A node response that a framework passes to the gateway. The framework may have set header fields on the response. */
export interface FrameworkResponse {
  getHeaderNames(): string[];
  getHeaders(): OutgoingHttpHeaders;
}

/**
 * Returns the header fields for a mounted gateway's response: those that the framework, such as Express, has set, then
 * the gateway's. A gateway field replaces the framework's field with the same name, except for `vary` and `set-cookie`.
 * Framework fields that describe a body are left out, because the body comes from the gateway.
 */
export function withFrameworkFields(response: FrameworkResponse, own: string[]): string[] {
  if (response.getHeaderNames().length === 0) return own;
  const fields: string[] = [];
  for (const [name, value] of Object.entries(response.getHeaders())) {
    const isReplaced = !combinedFields.has(name) && readHeaderField(own, name) !== null;
    if (value === undefined || isReplaced || fieldsNotCopiedFromFramework.has(name)) continue;
    for (const line of [value].flat()) fields.push(name, String(line));
  }
  return [...fields, ...own];
}

const combinedFields: ReadonlySet<string> = new Set(["set-cookie", "vary"]);
