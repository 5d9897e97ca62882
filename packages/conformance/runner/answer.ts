import type { CaseRequest, Field } from "./case.ts";

/** What came back of a request. */
export interface Answer {
  readonly status: number;
  /** The header, names in lower case, in the order in which it came. */
  readonly header: readonly Field[];
  readonly body: Buffer;
  /** Whether the body ended as it said that it would; a stream that fails may not. */
  readonly isWhole: boolean;
}

/** Why there is no answer: in words that go behind "the server". */
export class NoAnswer extends Error {
  readonly kind: "no server" | "closed" | "late" | "too large" | "not HTTP";

  constructor(kind: NoAnswer["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The most that is read of an answer's header, in bytes: no server sends more than this to a case. */
export const headerLimitBytes: number = 64 * 1024;

/** The most that is read of an answer's body, in bytes: a hundred times the longest that a case can have. */
export const bodyLimitBytes: number = 1024 * 1024;

/** Sends a request and reads its answer. Rejects with a `NoAnswer` within `timeoutMs`. */
export type Exchange = (request: CaseRequest, timeoutMs: number) => Promise<Answer>;

/** The bytes of a request's body, if it has one. */
export function bodyOf({ json, text, base64 }: CaseRequest): Buffer | undefined {
  if (base64 !== undefined) return Buffer.from(base64, "base64");
  const body = json ?? text;
  return body === undefined ? undefined : Buffer.from(body);
}

/** The header fields of a request, apart from those that frame it. */
export function headerOf({ header = [], json }: CaseRequest): readonly Field[] {
  return json === undefined ? header : [["content-type", "application/json"], ...header];
}

/** The value of a header field; of several the first. */
export function fieldOf(header: readonly Field[], name: string): string | undefined {
  return header.find(([each]) => each === name)?.[1];
}
