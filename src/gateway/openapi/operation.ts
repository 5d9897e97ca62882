import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import type { BoundFields } from "../json/index.ts";
import { findField, type RestBinding, streamContentTypes } from "../rest/index.ts";
import type {
  OpenApiContent,
  OpenApiMediaType,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiResponse,
  OpenApiSchema,
  OpenApiVersion,
} from "./open-api-document.ts";
import type { PathParameter } from "./open-api-path.ts";
import { describePathParameter, describeQuery } from "./parameters.ts";
import type { Schemas } from "./schemas.ts";

/** Options of {@link describeOperation}; the same for all operations of a document. */
export interface OperationOptions {
  readonly openapi: OpenApiVersion;
  readonly schemas: Schemas;
  /** Describes the success of an RPC; `undefined` for the reason phrase of HTTP. */
  readonly describeSuccess: (method: DescMethod) => string | undefined;
  /** The error answers, by status. */
  readonly errors: Readonly<Record<string, OpenApiResponse>>;
}

/** The names that an operation has in the document. */
export interface OperationNames {
  readonly operationId: string;
  readonly tag: string | undefined;
}

/** Describes the parameters, the body and the answers of one binding. */
export function describeOperation(
  binding: RestBinding,
  { operationId, tag }: OperationNames,
  pathParameters: readonly PathParameter[],
  options: OperationOptions,
): OpenApiOperation {
  const { method, pattern, boundByPath, boundByPathOrBody } = binding;
  const { input } = method;
  const { schemas } = options;
  const parameters: readonly OpenApiParameter[] = [
    ...pathParameters.map((parameter) => describePathParameter(input, parameter, schemas)),
    ...describeQuery(input, boundByPathOrBody, schemas),
  ];
  const body = schemaOfBody(input, pattern.body, boundByPath, schemas);
  const content = bodyContent(binding, body, options.openapi);
  return {
    operationId,
    ...summarize(schemas.commentOf(method)),
    ...(tag !== undefined && { tags: [tag] }),
    ...(method.deprecated && { deprecated: true }),
    ...(parameters.length > 0 && { parameters }),
    ...(content !== undefined && { requestBody: { content } }),
    responses: { ...describeSuccess(binding, options), ...options.errors },
  };
}

/** Returns the body of requests in each of its content types: of a stream in OpenAPI 3.1, the schema of one message. */
function bodyContent(
  { bodyFormat }: RestBinding,
  schema: OpenApiSchema | undefined,
  openapi: OpenApiVersion,
): OpenApiContent | undefined {
  if (bodyFormat.kind === "bytes") return anyContent;
  const media = bodyFormat.kind === "lines" && openapi === "3.2.0" ? itemsOf : schemaOf;
  return schema && Object.fromEntries(bodyFormat.contentTypes.map((type) => [type, media(schema)]));
}

function schemaOfBody(
  input: DescMessage,
  body: string,
  bound: BoundFields,
  schemas: Schemas,
): OpenApiSchema | undefined {
  if (body === "*") return bound.size === 0 ? schemas.ofMessage(input) : schemas.ofObject(input, bound);
  const field = findField(input, body);
  const below = field && bound.get(field);
  return field && schemas.ofField(field, below === "whole" ? undefined : below);
}

function describeSuccess(
  { method, pattern, preparedResponse, toRaw }: RestBinding,
  { openapi, schemas, describeSuccess: describe }: OperationOptions,
): Readonly<Record<string, OpenApiResponse>> {
  // The reason phrases are those of RFC 9110 §15.3.1 and §15.3.5.
  if (preparedResponse?.httpStatus === 204) return { "204": { description: describe(method) ?? "No Content" } };
  const field = findField(method.output, pattern.responseBody);
  const schema = field === undefined ? schemas.ofMessage(method.output) : schemas.ofWholeBody(field);
  if (toRaw !== undefined) return { "200": { description: describe(method) ?? "OK", content: anyContent } };
  if (method.methodKind === "unary" || method.methodKind === "client_streaming")
    return { "200": { description: describe(method) ?? "OK", content: jsonContent(schema) } };
  const description = describe(method) ?? "OK: a stream, in the form that Accept asks for";
  return { "200": { description, content: streamContent(schema, openapi) } };
}

// Bytes of any type: google.api.HttpBody.
const anyContent: OpenApiContent = { "*/*": { schema: {} } };

/** Returns a JSON body. */
export function jsonContent(schema: OpenApiSchema): OpenApiContent {
  return { "application/json": { schema } };
}

// In JSON a stream is an array; in all other forms it is one message after the other.
function streamContent(schema: OpenApiSchema, openapi: OpenApiVersion): OpenApiContent {
  return Object.fromEntries(
    streamContentTypes.map((type) => {
      if (type === "application/json") return [type, schemaOf({ type: "array", items: schema })];
      if (openapi === "3.1.0") return [type, schemaOf(schema)];
      return [type, itemsOf(type === "text/event-stream" ? eventOf(schema) : schema)];
    }),
  );
}

function schemaOf(schema: OpenApiSchema): OpenApiMediaType {
  return { schema };
}

function itemsOf(itemSchema: OpenApiSchema): OpenApiMediaType {
  return { itemSchema };
}

/** Returns the schema of a Server-Sent Event, which to OpenAPI 3.2 is an object: its data is a message unless it is named. */
function eventOf(schema: OpenApiSchema): OpenApiSchema {
  const data: OpenApiSchema = { type: "string", contentMediaType: "application/json", contentSchema: schema };
  const named: OpenApiSchema = { event: { enum: ["end", "error"] }, data: { type: "string" } };
  return {
    type: "object",
    properties: { retry: { type: "integer" } },
    required: ["data"],
    oneOf: [
      { properties: { data }, not: { required: ["event"] } },
      { properties: named, required: ["event"] },
    ],
  };
}

// The first sentence of a comment.
const firstSentence = /^(.+?)[.!?]?(?:\n\n|(?<=[.!?])\s+|$)/s;

function summarize(comment: string | undefined): { readonly summary?: string; readonly description?: string } {
  const [whole = "", sentence] = firstSentence.exec(comment ?? "") ?? [];
  if (comment === undefined || sentence === undefined) return {};
  const description = comment.slice(whole.length).trim();
  return { summary: sentence.replaceAll("\n", " "), ...(description !== "" && { description }) };
}
