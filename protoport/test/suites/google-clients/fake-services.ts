import { fromJson } from "@bufbuild/protobuf";
import type { DescMethod, DescService, FileRegistry, JsonObject, Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { type ClientCall, nextPageToken } from "./client-calls.ts";

/** An error code that the clients do not retry, and its HTTP status. */
export type ErrorCode = { readonly code: Code; readonly httpStatus: number };

// oxfmt-ignore
const errorCodes: readonly ErrorCode[] = [
  { code: Code.InvalidArgument, httpStatus: 400 }, { code: Code.PermissionDenied, httpStatus: 403 },
  { code: Code.NotFound, httpStatus: 404 }, { code: Code.AlreadyExists, httpStatus: 409 },
  { code: Code.FailedPrecondition, httpStatus: 400 }, { code: Code.OutOfRange, httpStatus: 400 },
  { code: Code.Unimplemented, httpStatus: 501 },
];

/** Returns the code that a call's error has. */
export function errorCodeOf(call: number): ErrorCode {
  const { [call % errorCodes.length]: code = { code: Code.Internal, httpStatus: 500 } } = errorCodes;
  return code;
}

/** All errors' message. */
export const errorMessage = 'no "é" here';

/** All errors' details, in JSON. */
export const errorDetails: Readonly<Record<string, JsonObject>> = {
  "google.rpc.ErrorInfo": { reason: "GONE", domain: "example.com", metadata: { zone: "é" } },
  "google.rpc.BadRequest": { fieldViolations: [{ field: "queue.name", description: "unknown" }] },
  "google.rpc.ResourceInfo": { resourceType: "queue", resourceName: "q", owner: "o", description: "d" },
};

/** A test call's header fields: the call's name with a number at the end, and whether the call fails. */
export const callHeader = { name: "x-call", fails: "x-fails" } as const;

/** Services whose handlers record requests and return the calls' responses. */
export class FakeServices {
  /** Each named call's requests. */
  readonly received: Map<string, Message[]> = new Map();
  readonly #definition: FileRegistry;
  readonly #calls: readonly ClientCall[];
  /** Operations that are done, by name. */
  readonly #operations: ReadonlyMap<unknown, JsonObject>;

  constructor(definition: FileRegistry, calls: readonly ClientCall[]) {
    this.#definition = definition;
    this.#calls = calls;
    const started = calls.filter(({ kind }) => kind === "operation");
    this.#operations = new Map(started.map(({ responses: [, done = {}] }) => [done["name"], done]));
  }

  /** Registers all calls' services. */
  register(router: ConnectRouter): void {
    const methods = new Set(this.#calls.map(({ method }) => method));
    for (const service of new Set([...methods].map(({ parent }) => parent))) {
      const handlers: Partial<ServiceImpl<DescService>> = {};
      const entries = service.methods.filter((method) => methods.has(method)).map((method) => this.#handler(method));
      router.service(service, Object.assign(handlers, Object.fromEntries(entries)));
    }
  }

  #handler(method: DescMethod): readonly [string, unknown] {
    const unary = (request: Message, context: HandlerContext): Message => {
      const operation = this.#operations.get(Reflect.get(request, "name"));
      if (method.name === "GetOperation" && operation !== undefined) return this.#message(method, operation);
      const { responses, kind } = this.#receive(request, context);
      const token: unknown = Reflect.get(request, "pageToken");
      const at = kind === "pages" ? responses.findIndex((_, page) => nextPageToken(page) === token) : 0;
      return this.#message(method, responses[at]);
    };
    const stream = async function* (this: FakeServices, request: Message, context: HandlerContext) {
      for (const response of this.#receive(request, context).responses) yield this.#message(method, response);
    };
    return [method.localName, method.methodKind === "unary" ? unary : stream.bind(this)];
  }

  #receive(request: Message, { requestHeader }: HandlerContext): ClientCall {
    const name = requestHeader.get(callHeader.name) ?? "";
    this.received.set(name, [...(this.received.get(name) ?? []), request]);
    const number = Number(name.split(" ").at(-1));
    const call = this.#calls[number];
    if (call === undefined) throw new ConnectError(`unknown call "${name}"`, Code.Internal);
    if (requestHeader.has(callHeader.fails)) throw this.#error(errorCodeOf(number).code);
    return call;
  }

  #error(code: Code): ConnectError {
    const details = Object.entries(errorDetails).flatMap(([name, value]) => {
      const desc = this.#definition.getMessage(name);
      return desc === undefined ? [] : [{ desc, value: fromJson(desc, value) }];
    });
    return new ConnectError(errorMessage, code, undefined, details);
  }

  #message({ output }: DescMethod, json: JsonObject = {}): Message {
    return fromJson(output, json, { registry: this.#definition });
  }
}
