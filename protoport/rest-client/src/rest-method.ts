import type { DescMethod, Message, Registry } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { BoundFields, JsonStyle, ReadJsonOptions } from "@protoport/gateway/messages";
import { findProtoField, isHttpBodyType, selectorOf } from "@protoport/gateway/rest";
import { type BodyWriter, createBodyWriter, type EncodedBody } from "./request-body.ts";
import { findVariableText, writePath } from "./request-path.ts";
import { type QueryStyle, writeQuery } from "./request-query.ts";
import { RefusalError } from "./refusal.ts";
import { compileRestRules, type RestClientRule } from "./rest-rule.ts";
import { createUrlValues, type UrlValues } from "./url-values.ts";

/** Options for reading and writing messages. */
export interface MessageStyle {
  readonly write: JsonStyle;
  readonly read: ReadJsonOptions;
  readonly registry: Registry | undefined;
}

/** A request that represents a message completely. */
export interface RestClientRequest {
  readonly rule: RestClientRule;
  /** The path and any query, relative to the base URL. */
  readonly target: string;
  readonly body: EncodedBody | undefined;
}

/** A binding and the compiled writer for its request bodies. */
interface Binding {
  readonly rule: RestClientRule;
  readonly writeBody: BodyWriter;
}

/** An RPC with the code that writes its requests. */
export class RestMethod {
  readonly desc: DescMethod;
  readonly #bindings: readonly Binding[];
  readonly #urlValues: UrlValues;
  readonly #urlValuesWithZeros: UrlValues;
  readonly #query: QueryStyle;

  /** @throws ConnectError `Internal` for an invalid annotation */
  constructor(desc: DescMethod, { write, registry }: MessageStyle) {
    this.desc = desc;
    this.#bindings = compileRestRules(desc).map((rule) => ({ rule, writeBody: createBodyWriter(rule, write) }));
    this.#urlValues = createUrlValues(write);
    this.#urlValuesWithZeros = createUrlValues({ ...write, alwaysEmitImplicit: true });
    this.#query = { texts: this.#urlValues, useProtoFieldName: write.useProtoFieldName === true, registry };
  }

  /** The main rule, without additional bindings, or `undefined` if the RPC has no rule. */
  get rule(): RestClientRule | undefined {
    return this.#bindings[0]?.rule;
  }

  /**
   * Returns the request for a message, with the first binding that can represent it. If no binding can, a second
   * attempt accepts default values, such as 0, for path variables without presence.
   *
   * @throws ConnectError `InvalidArgument` with the names of fields that the bindings cannot represent
   */
  write(message: Message): RestClientRequest {
    const problems: string[] = [];
    const request =
      this.#writeWith(this.#urlValues, message, []) ?? this.#writeWith(this.#urlValuesWithZeros, message, problems);
    if (request === undefined) throw this.#refusal(problems);
    return request;
  }

  #writeWith(texts: UrlValues, message: Message, problems: string[]): RestClientRequest | undefined {
    for (const { rule, writeBody } of this.#bindings) {
      const request = this.#attempt(problems, () => {
        const path = writePath(rule, message, texts);
        const query = writeQuery(this.desc.input, message, rule.boundByPathOrBody, this.#query);
        return { rule, target: query === "" ? path : `${path}?${query}`, body: writeBody(message) };
      });
      if (request !== undefined) return request;
    }
    return undefined;
  }

  /**
   * Returns the body for a later message of a stream. Only the first message may set fields that belong to the URL.
   *
   * @throws ConnectError `InvalidArgument` that names the field
   */
  writeLater(rule: RestClientRule, message: Message): EncodedBody {
    const problems: string[] = [];
    const body = this.#attempt(problems, () => {
      const setVariable = rule.variables.find(
        (variable) => findVariableText(variable, message, this.#urlValues) !== undefined,
      );
      if (setVariable !== undefined)
        throw new RefusalError(`${setVariable.name}: may be set only in the first message of a stream`);
      const query = writeQuery(this.desc.input, message, bodyOf(rule), this.#query);
      if (query !== "")
        throw new RefusalError(`${query.split("=", 1)[0]}: may be set only in the first message of a stream`);
      return this.#writePiece(rule, message);
    });
    if (body === undefined) throw this.#refusal(problems);
    if (isRawBody(rule) && body.contentType !== undefined) {
      throw this.#refusal([`${rule.pattern.body}.content_type: may be set only in the first message of a stream`]);
    }
    return body;
  }

  /**
   * Returns the body for a stream's first message. If the body field is not set, the body is the line `null`.
   *
   * @throws ConnectError `InvalidArgument` that names the field
   */
  writeFirstMessage(rule: RestClientRule, message: Message): EncodedBody {
    const problems: string[] = [];
    const body = this.#attempt(problems, () => this.#writePiece(rule, message));
    if (body === undefined) throw this.#refusal(problems);
    return body;
  }

  #writePiece(rule: RestClientRule, message: Message): EncodedBody {
    const writtenBody = this.#bindings.find((binding) => binding.rule === rule)?.writeBody(message);
    const field = findProtoField(this.desc.input, rule.pattern.body);
    if (writtenBody === undefined && field?.message?.typeName === "google.protobuf.Value") {
      throw new RefusalError(`${field.name}: must be set in a stream`);
    }
    return writtenBody ?? { contentType: "application/json", bytes: new TextEncoder().encode("null") };
  }

  #attempt<Value>(problems: string[], write: () => Value): Value | undefined {
    try {
      return write();
    } catch (error) {
      if (!(error instanceof RefusalError)) throw error;
      problems.push(error.message);
      return undefined;
    }
  }

  #refusal(problems: readonly string[]): ConnectError {
    const shownProblems = [...new Set(problems)].slice(0, problemsShown).join("; or ");
    return new ConnectError(
      `cannot send this message to ${selectorOf(this.desc)}: ${shownProblems}`,
      Code.InvalidArgument,
    );
  }
}

// Maximum number of problems in an error. The problems with the first bindings help most.
const problemsShown = 3;

/** Returns whether the request body for a rule is raw bytes instead of JSON. */
export function isRawBody({ method, pattern }: RestClientRule): boolean {
  if (pattern.body === "*") return isHttpBodyType(method.input);
  return isHttpBodyType(findProtoField(method.input, pattern.body)?.message);
}

/** Returns the fields that the request body contains. */
function bodyOf({ method, pattern, boundByPathOrBody }: RestClientRule): BoundFields {
  if (pattern.body === "*") return boundByPathOrBody;
  const field = findProtoField(method.input, pattern.body);
  return new Map(field === undefined ? [] : [[field, "whole"]]);
}
