import type { HandlerContext } from "@connectrpc/connect";
import { beginAnswer, requestOf } from "@plantstore/gateway/internal/serve";
import type { HeaderFields } from "@plantstore/gateway/exchange";
import type { RequestFields } from "../client/index.ts";
import { LazyHeaders } from "@plantstore/gateway/internal/protocols";
import { type AddedFields, type ForwardedFields, nothing } from "./forward-rules.ts";

/** Returns the fields of a call's header to pass on to the upstream. */
export function forwardHeader(context: HandlerContext, fields: ForwardedFields): RequestFields {
  const { requestHeader } = context;
  const sent = requestHeader instanceof LazyHeaders ? requestHeader.fields : [...requestHeader].flat();
  return fields.of(sent, fields.added(requestOf(context)));
}

/** Where what an upstream answers besides messages goes: the header and trailer of the caller's answer. */
export class AnswerMetadata {
  readonly #context: HandlerContext;
  readonly #fields: ForwardedFields;
  /** Known before the call is made, so that what the program throws is a fault of its own. */
  readonly #added: AddedFields;
  #isComplete = false;

  constructor(context: HandlerContext, fields: ForwardedFields) {
    this.#context = context;
    this.#fields = fields;
    this.#added = fields.added(requestOf(context));
  }

  /** Takes the header section; not one that is all of the answer, which is a trailer. */
  header(fields: HeaderFields): void {
    if (this.#isComplete) return;
    append(this.#context.responseHeader, this.#fields.of(fields, this.#added).fields);
    beginAnswer(this.#context);
  }

  /** Takes the trailer section. */
  trailer(fields: HeaderFields): void {
    this.#isComplete = true;
    append(this.#context.responseTrailer, this.#fields.of(fields, nothing).fields);
  }
}

function append(headers: Headers, fields: HeaderFields): void {
  for (let at = 0; at < fields.length; at += 2) headers.append(fields[at] ?? "", fields[at + 1] ?? "");
}
