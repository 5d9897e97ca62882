import type { DescField, DescMessage, DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { create, fromBinary, fromJson, toBinary } from "@bufbuild/protobuf";
import { isReflectMessage, reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { createTestGateway } from "../../../../../../testing/src/gateway/test-gateway.ts";
import { openValidation } from "../../../../../../gateway/src/validation/index.ts";
import type { ComparisonCase } from "./case.ts";

/** What a client gets in response to a recorded request, and what the handler receives. */
export interface Exchange {
  readonly status: number;
  readonly contentType: string | null;
  readonly body: unknown;
  /** The fields that handlers received, by name if the request is binary, otherwise by number. */
  readonly received: readonly unknown[];
}

/** Sends a test case's recorded request to a gateway. @param recorded - the old definition's services */
export async function exchange(
  { request = "POST /call", body, response = {}, rest = {} }: ComparisonCase,
  recorded: readonly DescService[],
  services: readonly DescService[],
): Promise<Exchange> {
  const received: unknown[] = [];
  const respond = (method: DescMethod, message: Message): Message => {
    received.push(fieldsOf(reflect(method.input, message), request.endsWith(" binary") ? "name" : "number"));
    const { output } = findMethod(recorded, method.name);
    return fromBinary(method.output, toBinary(output, fromJson(output, response)));
  };
  const validation = await openValidation();
  const routes = (router: ConnectRouter) => services.forEach((each) => router.service(each, handlersOf(each, respond)));
  const gateway = createTestGateway({ routes, rest, onFault: () => undefined, validation });
  const { port } = await gateway.listen({ host: "127.0.0.1" });
  try {
    const sent = toFetch(request, body, recorded);
    const fetched = await fetch(`http://127.0.0.1:${port}${sent.target}`, sent.init);
    const bytes = new Uint8Array(await fetched.arrayBuffer());
    const contentType = fetched.headers.get("content-type");
    return { status: fetched.status, contentType, body: readBody(bytes, contentType, sent.output), received };
  } finally {
    await gateway.close();
  }
}

function findMethod(services: readonly DescService[], name: string): DescMethod {
  const methods = services.flatMap((service) => service.methods);
  const method = methods.find((each) => each.name === name) ?? methods[0];
  if (method === undefined) throw new Error("the old definition has no RPC");
  return method;
}

type Respond = (method: DescMethod, message: Message) => Message;

function handlersOf(service: DescService, respond: Respond): Partial<ServiceImpl<DescService>> {
  const entries = service.methods.map((method): readonly unknown[] => [method.localName, handlerOf(method, respond)]);
  return Object.fromEntries(entries);
}

function handlerOf(method: DescMethod, respond: Respond): unknown {
  const respondToAll = async (messages: AsyncIterable<Message>): Promise<Message> => {
    let response: Message | undefined;
    for await (const message of messages) response = respond(method, message);
    return response ?? create(method.output);
  };
  switch (method.methodKind) {
    case "unary":
      return (message: Message) => respond(method, message);
    case "server_streaming":
      return async function* (message: Message): AsyncGenerator<Message> {
        yield respond(method, message);
      };
    case "client_streaming":
      return respondToAll;
    case "bidi_streaming":
      return async function* (messages: AsyncIterable<Message>): AsyncGenerator<Message> {
        yield await respondToAll(messages);
      };
  }
}

type SentRequest = { readonly target: string; readonly init: RequestInit; readonly output: DescMessage };

function toFetch(request: string, body: ComparisonCase["body"], recorded: readonly DescService[]): SentRequest {
  const [first = "", second = ""] = request.split(" ");
  const json = body === undefined ? {} : { body: JSON.stringify(body) };
  if (second.startsWith("/")) {
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    return { target: second, init: { method: first, headers, ...json }, output: findMethod(recorded, "Call").output };
  }
  const method = findMethod(recorded, first.split(".").at(-1) ?? "");
  const { input, output } = method;
  const path = `/${method.parent.typeName}/${method.name}`;
  const post = (contentType: string, content: string | Buffer<ArrayBuffer>): SentRequest => ({
    target: path,
    init: { method: "POST", headers: { "content-type": contentType }, body: content },
    output,
  });
  if (second === "get") {
    const query = new URLSearchParams({ connect: "v1", encoding: "json", message: JSON.stringify(body) });
    return { target: `${path}?${query.toString()}`, init: {}, output };
  }
  if (second === "stream") return post("application/connect+json", Buffer.concat([enveloped(body), enveloped(body)]));
  if (second === "json") return post("application/json", JSON.stringify(body));
  return post("application/proto", Buffer.from(toBinary(input, fromJson(input, body ?? {}))));
}

/** Returns a stream's message, with the flags and the length before it. */
function enveloped(body: ComparisonCase["body"]): Buffer<ArrayBuffer> {
  const text = JSON.stringify(body);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([head, Buffer.from(text)]);
}

function readBody(bytes: Uint8Array, contentType: string | null, output: DescMessage): unknown {
  if (contentType === "application/proto") return fieldsOf(reflect(output, fromBinary(output, bytes)), "name");
  const text = new TextDecoder().decode(bytes);
  return contentType === "application/json" ? JSON.parse(text) : text;
}

type Key = "name" | "number";

/** Returns a message's fields: numbers for JSON, which keeps names, and names for binary, which keeps numbers. */
function fieldsOf(message: ReflectMessage, key: Key): unknown {
  const fields = message.fields.filter((field) => message.isSet(field));
  return Object.fromEntries(fields.map((field) => [field[key], valueOf(message, field, key)]));
}

function valueOf(message: ReflectMessage, field: DescField, key: Key): unknown {
  switch (field.fieldKind) {
    case "message":
      return fieldsOf(message.get(field), key);
    case "list":
      return Array.from(message.get(field), (item) => itemOf(item, key));
    case "map":
      return Object.fromEntries(Array.from(message.get(field), ([name, value]) => [String(name), itemOf(value, key)]));
    case "enum": {
      const number = message.get(field);
      return key === "name" ? field.enum.value[number]?.name : String(number);
    }
    case "scalar":
      return itemOf(message.get(field), key);
  }
}

function itemOf(value: unknown, key: Key): unknown {
  if (isReflectMessage(value)) return fieldsOf(value, key);
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : String(value);
}
