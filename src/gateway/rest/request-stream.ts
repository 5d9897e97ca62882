import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type BoundFields, isRequiredField } from "../json/index.ts";
import type { BodyFormat } from "./body-format.ts";
import type { RequestBody } from "./request-body.ts";
import { RuleProblem } from "./rule-problem.ts";

/** The parts of a request's URL that set fields. */
export interface RequestUrl {
  /** The values of the path template's variables, from the route table. */
  readonly captures: readonly string[];
  /** The raw text after the question mark; `""` when there is none. */
  readonly query: string;
}

/** Reads the two kinds of messages in a stream. Both throw a `ConnectError` of `InvalidArgument`. */
export interface StreamReaders {
  /** Reads the first message, which also gets the fields in the URL. */
  first(body: RequestBody): Message;
  /** Reads any other message. */
  further(body: RequestBody): Message;
}

/**
 * The messages that one client streams. Only the first message gets the fields in the URL. No other may set a field of
 * the path either, so that nothing overrides the path.
 */
export class RequestStream {
  readonly #url: RequestUrl;
  readonly #contentType: string | null;
  readonly #format: BodyFormat;
  readonly #readers: StreamReaders;
  #begun = false;

  constructor(request: RequestUrl & Pick<RequestBody, "contentType">, format: BodyFormat, readers: StreamReaders) {
    this.#url = request;
    this.#contentType = request.contentType;
    this.#format = format;
    this.#readers = readers;
  }

  /** Reads the next message. @throws ConnectError `InvalidArgument` that names the field */
  read(body: Uint8Array): Message {
    if (this.#begun) return this.#readers.further({ contentType: null, body });
    this.#begun = true;
    return this.#readers.first({ contentType: this.#contentType, body });
  }

  /**
   * Ends the stream.
   *
   * @returns the one message that an empty body of bytes stands for, such as an empty file; otherwise `undefined`
   * @throws ConnectError `InvalidArgument` for a stream without messages if its URL sets fields, which no handler would
   * see
   */
  end(): Message | undefined {
    if (this.#begun) return undefined;
    if (this.#format.kind === "bytes") return this.read(new Uint8Array(0));
    if (this.#url.captures.length === 0 && this.#url.query === "") return undefined;
    throw new ConnectError("the body has no message, and the URL is about the first", Code.InvalidArgument);
  }
}

/**
 * Checks that a rule can be applied to a stream of messages: that there is a body for them, and that the messages after
 * the first, which have neither path nor query, can be complete.
 *
 * @throws RuleProblem that says why not
 */
export function requireStreamable(input: DescMessage, body: string, boundByPath: BoundFields): void {
  if (body === "") throw new RuleProblem("takes a stream of messages, and has no body for them");
  const outside = body === "*" ? [] : input.fields.filter((field) => field.name !== body && isRequiredField(field));
  const lost = outside[0] ?? findRequired(boundByPath);
  if (lost !== undefined) {
    throw new RuleProblem(`takes a stream, whose first message alone can have the required field "${lost.name}"`);
  }
}

function findRequired(bound: BoundFields): DescField | undefined {
  for (const [field, below] of bound) {
    const found = below !== "whole" ? findRequired(below) : isRequiredField(field) ? field : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
