import type { CaseRequest, Field } from "./case.ts";

/** The response to a request. */
export interface HttpResponse {
  readonly status: number;
  /** The header fields in the order received, with names in lower case. */
  readonly header: readonly Field[];
  readonly body: Buffer;
  /** Whether the complete body was received. The body of a failed stream may be incomplete. */
  readonly isComplete: boolean;
}

/** The reason why there is no response, as a phrase that follows "the server". */
export class NoResponse extends Error {
  readonly kind: "no server" | "closed" | "timeout" | "too large" | "not HTTP";

  constructor(kind: NoResponse["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Maximum size of a response's header, in bytes. No server sends a larger header for a case. */
export const headerLimitBytes: number = 64 * 1024;

/** Maximum size of a response's body, in bytes. The limit is a hundred times the longest body in all cases. */
export const bodyLimitBytes: number = 1024 * 1024;

/** Sends a request and reads its response. Rejects with a `NoResponse` within `timeoutMs`. */
export type Exchange = (request: CaseRequest, timeoutMs: number) => Promise<HttpResponse>;

/** Returns the bytes of a request's body, if it has one. */
export function bodyOf({ json, text, base64 }: CaseRequest): Buffer | undefined {
  if (base64 !== undefined) return Buffer.from(base64, "base64");
  const body = json ?? text;
  return body === undefined ? undefined : Buffer.from(body);
}

/** Returns a request's header fields, without the fields that frame the body. */
export function headerOf({ header = [], json }: CaseRequest): readonly Field[] {
  return json === undefined ? header : [["content-type", "application/json"], ...header];
}

/** Returns the first value of a header field. */
export function fieldOf(header: readonly Field[], name: string): string | undefined {
  return header.find(([each]) => each === name)?.[1];
}
