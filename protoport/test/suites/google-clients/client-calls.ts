// oxfmt-ignore
import { create, type DescEnum, type DescField, type DescMessage, type DescMethod, type DescService, type FileRegistry,
  getOption, type JsonObject, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { http } from "../../../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema } from "../../../gateway/src/protobuf/gen/google/api/http_pb.ts";
import { clientServices, configRules } from "./definition.ts";

/** How a client returns results: a response, a stream, the items on all pages, or a long-running operation. */
export type CallKind = "unary" | "stream" | "pages" | "operation";

/** A client's call, and the messages that it sends and gets. */
export interface ClientCall {
  /** The service to which the client belongs. */
  readonly client: DescService;
  readonly method: DescMethod;
  readonly kind: CallKind;
  /** The rule's path for which the request has values. */
  readonly path: string;
  readonly request: JsonObject;
  /** The handler's responses: one, a stream, pages, or an operation while it runs and when it is done. */
  readonly responses: readonly JsonObject[];
  /**
   * The types of a client's results, in order. The last type also applies to further results. Excludes items that are
   * not messages.
   */
  readonly resultTypes: readonly DescMessage[];
  /** What a client returns: each response, each item on all pages, or an operation's response and metadata. */
  readonly results: readonly JsonValue[];
}

/** How many messages a stream has, and how many pages a list has. */
const manyResponses = 3;

/**
 * Returns calls to every RPC that a client offers, with each path in its rule. Google's REST clients offer no client
 * streams.
 */
export const createCalls = (definition: FileRegistry): readonly ClientCall[] =>
  clientServices(definition).flatMap(({ service, mixin }) => {
    const sampler = new MessageSampler();
    return [...service.methods, ...mixin.methods]
      .filter(({ methodKind }) => methodKind === "unary" || methodKind === "server_streaming")
      .flatMap((method) => {
        const paths = pathsOf(method, service);
        return sampleResults(method, definition, sampler).flatMap((results) =>
          paths.map(({ path, body }) => {
            const request = sampleRequest(method.input, path, body, sampler);
            return { client: service, method, path, request, ...results };
          }),
        );
      });
  });

type Path = { readonly path: string; readonly body: string };

/** Returns an RPC's paths. For shared services, returns the rules with the version of the client's service. */
function pathsOf(method: DescMethod, client: DescService): readonly Path[] {
  const external = configRules.find(({ selector }) => selector === `${method.parent.typeName}.${method.name}`);
  const rule: HttpRule = external === undefined ? getOption(method, http) : create(HttpRuleSchema, external);
  const paths = [rule, ...rule.additionalBindings].flatMap(({ pattern, body }) =>
    typeof pattern.value === "string" ? [{ path: pattern.value, body }] : [],
  );
  const version = /v\d\w*/.exec(client.typeName)?.[0];
  return paths.filter(({ path }) => path.startsWith(`/${version}/`));
}

/** Returns a request with values for a path's variables, and without fields that a query cannot contain. */
function sampleRequest(input: DescMessage, path: string, body: string, sampler: MessageSampler): JsonObject {
  const inQuery = (field: DescField): boolean => body !== "*" && body !== field.name;
  const isSent = (field: DescField): boolean =>
    field.name !== "page_token" && !(inQuery(field) && (field.fieldKind === "map" || isListOfMessages(field)));
  const request = sampler.sample(input, isSent);
  for (const [, name = "", template = "*"] of path.matchAll(/\{([\w.]+)(?:=([^}]*))?\}/g)) {
    const segments = template
      .split("/")
      .map((segment, at) => segment.replace("**", "a b").replace("*", `example.com:é ~${at}`));
    setField(request, name.split(".").map(camelCase), segments.join("/"));
  }
  return request;
}

const isListOfMessages = (field: DescField): boolean => field.fieldKind === "list" && field.listKind === "message";

function setField(message: JsonObject, [name = "", ...rest]: readonly string[], value: string): void {
  if (rest.length === 0) {
    message[name] = value;
    return;
  }
  const inner = message[name];
  if (typeof inner === "object" && inner !== null && !Array.isArray(inner)) setField(inner, rest, value);
}

const camelCase = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
type Results = Pick<ClientCall, "kind" | "responses" | "resultTypes" | "results">;

function sampleResults(method: DescMethod, definition: FileRegistry, sampler: MessageSampler): readonly Results[] {
  const { input, output } = method;
  const responses = (): JsonObject[] => Array.from({ length: manyResponses }, () => sampler.sample(output));
  if (method.methodKind === "server_streaming")
    return [responses(), []].map((all) => ({ kind: "stream", responses: all, resultTypes: [output], results: all }));
  const items = output.fields.find(({ fieldKind }) => fieldKind === "list");
  if (items !== undefined && "pageToken" in input.field && "nextPageToken" in output.field) {
    const pages = responses().map((page, at) => ({ ...page, nextPageToken: nextPageToken(at + 1) }));
    const results = pages.flatMap((page: JsonObject) => page[items.jsonName] ?? []);
    return [
      { kind: "pages", responses: pages, resultTypes: items.message === undefined ? [] : [items.message], results },
    ];
  }
  const types = operationTypes(method, definition);
  if (types !== undefined) return [sampleOperation(method, types, sampler)];
  const response = sampler.sample(output);
  return [{ kind: "unary", responses: [response], resultTypes: [output], results: [response] }];
}

/** Returns an operation that is running at first, and done when the client asks for it. */
function sampleOperation(method: DescMethod, types: readonly DescMessage[], sampler: MessageSampler): Results {
  const results = types.map((type) => sampler.sample(type));
  const [response = {}, metadata = {}] = types.map(({ typeName }, at): JsonObject => ({
    "@type": `type.googleapis.com/${typeName}`,
    ...results[at],
  }));
  const parent = method.parent.typeName.startsWith("google.firestore.") ? "databases" : "locations";
  const name = `projects/p/${parent}/x/operations/${method.name}`;
  const states = [
    { name, metadata },
    { name, metadata, done: true, response },
  ];
  return { kind: "operation", responses: states, resultTypes: types, results };
}

/** Returns the token for a page number. The token is empty for the first page, and after the last page. */
export const nextPageToken = (at: number): string => (at === 0 || at === manyResponses ? "" : `page ${at}+/=`);

/** Returns the types of a long-running operation's response and metadata. */
function operationTypes(method: DescMethod, definition: FileRegistry): readonly DescMessage[] | undefined {
  const info = definition.getExtension("google.longrunning.operation_info");
  if (info?.message === undefined || method.output.typeName !== "google.longrunning.Operation") return undefined;
  if (method.parent.typeName === "google.longrunning.Operations") return undefined;
  const { responseType, metadataType } = Object(getOption(method, info));
  return [responseType, metadataType].flatMap((name: string) => {
    const type = definition.getMessage(name.includes(".") ? name : `${method.parent.file.proto.package}.${name}`);
    return type === undefined ? [] : [type];
  });
}

/** Values for scalar fields in JSON: limits, and characters that have a meaning in URLs and in JSON. */
// oxfmt-ignore
const scalars: Readonly<Record<ScalarType, JsonValue>> = {
  [ScalarType.STRING]: 'é ?&=+%2F"\\/#', [ScalarType.BYTES]: "AP/+7wo=", [ScalarType.BOOL]: true,
  [ScalarType.DOUBLE]: -1.5e-7, [ScalarType.FLOAT]: 0.25, [ScalarType.INT32]: -2147483648,
  [ScalarType.SINT32]: -2147483648, [ScalarType.SFIXED32]: -2147483648, [ScalarType.UINT32]: 4294967295,
  [ScalarType.FIXED32]: 4294967295, [ScalarType.INT64]: "9007199254740993", [ScalarType.SINT64]: "9007199254740993",
  [ScalarType.SFIXED64]: "9007199254740993", [ScalarType.UINT64]: "18446744073709551615",
  [ScalarType.FIXED64]: "18446744073709551615",
};

/** Types with a special form in JSON. An Any is omitted, because its type would be arbitrary. */
// oxfmt-ignore
const specialForms: Readonly<Record<string, JsonValue | undefined>> = {
  "google.protobuf.Any": undefined, "google.protobuf.Duration": "3.000000001s",
  "google.protobuf.FieldMask": "displayName,rateLimits.maxBurstSize", "google.protobuf.ListValue": [null, 1.5],
  "google.protobuf.Struct": { a: [true, { b: "c" }] }, "google.protobuf.Timestamp": "2026-11-26T18:00:00.123456789Z",
  "google.protobuf.Value": "v",
};

/** How deep messages are nested. Some types contain themselves. */
const maxDepth = 4;

/** Creates messages in which every field is set. Each message sets another oneof member than the previous one. */
export class MessageSampler {
  /** How many messages each type has so far. */
  readonly #counts = new Map<DescMessage, number>();

  /**
   * Returns a message in JSON.
   *
   * @param isSet - whether to set a field of the message itself, for fields that cannot be sent
   */
  sample(desc: DescMessage, isSet: (field: DescField) => boolean = () => true, depth = 1): JsonObject {
    const count = this.#counts.get(desc) ?? 0;
    this.#counts.set(desc, count + 1);
    const message: JsonObject = {};
    for (const member of desc.members) {
      const fields = member.kind === "field" ? [member] : rotate(member.fields, count);
      for (const field of fields.filter(isSet)) {
        const value = this.#fieldValue(field, depth);
        if (value === undefined) continue;
        message[field.jsonName] = value;
        break;
      }
    }
    return message;
  }

  #fieldValue(field: DescField, depth: number): JsonValue | undefined {
    const value = this.#value(field, depth);
    if (value === undefined) return undefined;
    if (field.fieldKind === "list") return [value, this.#value(field, depth) ?? value];
    if (field.fieldKind !== "map") return value;
    return { [field.mapKey === ScalarType.STRING ? "clé" : "1"]: value };
  }

  #value({ message, enum: type, scalar = ScalarType.STRING }: DescField, depth: number): JsonValue | undefined {
    if (message === undefined) return type === undefined ? scalars[scalar] : lastName(type);
    if (message.typeName in specialForms) return specialForms[message.typeName];
    if (isWrapper(message)) return this.#value(message.field.value, depth);
    return depth >= maxDepth ? undefined : this.sample(message, undefined, depth + 1);
  }
}

function isWrapper(desc: DescMessage): desc is DescMessage & { readonly field: { readonly value: DescField } } {
  return desc.file.proto.name === "google/protobuf/wrappers.proto";
}

function rotate<T>(values: readonly T[], by: number): readonly T[] {
  const start = by % values.length;
  return [...values.slice(start), ...values.slice(0, start)];
}

function lastName({ values, typeName }: DescEnum): JsonValue {
  return typeName === "google.protobuf.NullValue" ? null : (values.at(-1)?.name ?? null);
}
