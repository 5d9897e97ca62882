import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { nearestName, withCode } from "../http/index.ts";
import {
  findProtoField,
  hasResponseStream,
  printPathTemplate,
  resolveProtoPath,
  type RestBinding,
  type StreamForm,
} from "../protocols/index.ts";
import { trimComment } from "./comments.ts";
import { FieldBudget, fieldsOmittedNote, maxOperationFields } from "./field-budget.ts";
import type {
  OpenApiContent,
  OpenApiMediaType,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiResponse,
  OpenApiRpc,
  OpenApiSchema,
  OpenApiSecurityRequirement,
  OpenApiSecurityScheme,
  OpenApiVersion,
} from "./open-api-document.ts";
import type { PathParameter } from "./open-api-path.ts";
import { externalDocsOf, openApiOptionsOf } from "./openapi-options.ts";
import { describePathParameter, describeQuery } from "./parameters.ts";
import type { BoundObject, Schemas } from "./schemas.ts";

/** Options for {@link describeOperation}. All operations in a document have the same options. */
export interface OperationOptions {
  readonly openapi: OpenApiVersion;
  readonly schemas: Schemas;
  /** Returns the description of an RPC's successful response, or `undefined` to use HTTP's reason phrase. */
  readonly describeSuccess: ((method: DescMethod) => string | undefined) | undefined;
  /** Returns the header fields that an RPC accepts. */
  readonly describeHeader: ((method: DescMethod) => readonly Omit<OpenApiParameter, "in">[]) | undefined;
  /** Returns an RPC's security requirements if they differ from the document's requirements. */
  readonly securityOf: Security["ofMethod"];
  /** The AI agent tool names, by RPC. */
  readonly toolNames: ReadonlyMap<DescMethod, string> | undefined;
  /** The error responses, by status. */
  readonly errors: Readonly<Record<string, OpenApiResponse>>;
}

/** An operation's id, which is unique in a document, and its tags. */
export type OperationNames = Pick<OpenApiOperation, "operationId" | "tags">;

/** Describes the operation for one binding, with its parameters, request body and responses. */
export function describeOperation(
  binding: RestBinding,
  { operationId, tags }: OperationNames,
  pathParameters: readonly PathParameter[],
  options: OperationOptions,
): OpenApiOperation {
  const { method, boundByPathOrBody } = binding;
  const { input } = method;
  const { schemas } = options;
  const budget = new FieldBudget(maxOperationFields, schemas.budget);
  const query = describeQuery(input, boundByPathOrBody, schemas, {
    acceptsMaps: binding.options.mapsInQuery,
    budget,
  });
  const parameters: readonly OpenApiParameter[] = [
    ...pathParameters.map((parameter) => describePathParameter(input, parameter, schemas)),
    ...query,
    ...(options.describeHeader?.(method) ?? []).map((field) => ({ ...field, in: "header" as const })),
  ];
  const { deprecated } = openApiOptionsOf(method);
  const { summary, description } = summarize(method, schemas.commentOf(method));
  const isQueryIncomplete = budget.isExceeded;
  const security = options.securityOf(method);
  const requestBody = describeBody(binding, options, budget);
  return {
    operationId,
    summary,
    description: isQueryIncomplete ? `${description}\n\n${fieldsOmittedNote}` : description,
    ...externalDocsOf(method),
    tags,
    ...((method.deprecated || method.parent.deprecated || deprecated === true) && { deprecated: true }),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody !== undefined && { requestBody }),
    responses: { ...describeSuccess(binding, options), ...options.errors },
    ...(security !== undefined && { security }),
    "x-rpc": describeRpc(binding, options),
  };
}

function describeRpc(
  { method, procedure, template, pattern }: RestBinding,
  { schemas, toolNames }: OperationOptions,
): OpenApiRpc {
  const namesOf = (fieldPath: readonly string[]): readonly string[] =>
    resolveProtoPath(method.input, fieldPath)?.map((field) => escapeName(schemas.nameOf(field))) ?? fieldPath;
  const variables = template.variables.map((variable) => ({ ...variable, fieldPath: namesOf(variable.fieldPath) }));
  const field = findProtoField(method.input, pattern.body);
  const body = field === undefined ? pattern.body : schemas.nameOf(field);
  const tool = toolNames?.get(method);
  const path = printPathTemplate({ ...template, variables });
  return { procedure, path, ...(body !== "" && { body }), ...(tool !== undefined && { tool }) };
}

// Escapes a JSON name, which may contain any character, for a path template.
function escapeName(name: string): string {
  return encodeURIComponent(name).replaceAll(".", "%2E");
}

function describeBody(
  binding: RestBinding,
  options: OperationOptions,
  budget: FieldBudget,
): OpenApiOperation["requestBody"] {
  const { method, pattern, boundByPath, bodyFormat } = binding;
  const field = findProtoField(method.input, pattern.body);
  const content = bodyContent(binding, options, budget);
  const inBody =
    field === undefined ? method.input.fields.filter((each) => boundByPath.get(each) !== "whole") : [field];
  // A stream without messages has an empty body, so the body is not required.
  const isBodyRequired =
    bodyFormat.isRequired === true ||
    (bodyFormat.kind !== "lines" && inBody.some((each) => options.schemas.isRequired(each)));
  return content && { ...(isBodyRequired && { required: true }), content };
}

/** Returns the request body's schema for each content type. In OpenAPI 3.1, a stream's schema describes one message. */
function bodyContent(
  { bodyFormat, method, pattern, boundByPath, options }: RestBinding,
  { openapi, schemas }: OperationOptions,
  budget: FieldBudget,
): OpenApiContent | undefined {
  if (bodyFormat.kind === "bytes") return anyContent;
  const bound = { byPath: boundByPath, budget, mayRepeat: options.sameValueAsPath };
  const schema = schemaOfBody(method.input, pattern.body, bound, schemas);
  const media = bodyFormat.kind === "lines" && openapi === "3.2.0" ? itemMediaType : schemaOf;
  if (schema === undefined) return undefined;
  const content = Object.fromEntries(bodyFormat.contentTypes.map((type) => [type, media(schema)]));
  // The gateway accepts a stream of JSON values in several formats. Tools support only the format with a JSON array.
  if (bodyFormat.jsonValues === "or-array") content["application/json"] = schemaOf({ type: "array", items: schema });
  return content;
}

function schemaOfBody(
  input: DescMessage,
  body: string,
  bound: BoundObject,
  schemas: Schemas,
): OpenApiSchema | undefined {
  if (body === "*") return bound.byPath.size === 0 ? schemas.ofMessage(input) : schemas.ofObject(input, bound);
  const field = findProtoField(input, body);
  const nestedBound = field && bound.byPath.get(field);
  return (
    field &&
    schemas.ofField(field, nestedBound && nestedBound !== "whole" ? { ...bound, byPath: nestedBound } : undefined)
  );
}

function describeSuccess(
  { method, pattern, preparedResponse, options: { contentType, streamForms }, toRaw }: RestBinding,
  { openapi, schemas, describeSuccess: describe }: OperationOptions,
): Readonly<Record<string, OpenApiResponse>> {
  const customDescription = describe?.(method);
  // RFC 9110 §15.3.1 and §15.3.5 define the reason phrases.
  if (preparedResponse?.httpStatus === 204) return { "204": { description: customDescription ?? "No Content" } };
  const ok = (content: OpenApiContent, description = "OK"): Readonly<Record<string, OpenApiResponse>> => {
    return { "200": { description: customDescription ?? description, content } };
  };
  if (toRaw !== undefined) return ok(anyContent);
  const field = findProtoField(method.output, pattern.responseBody);
  const schema = field === undefined ? schemas.ofMessage(method.output) : schemas.ofWholeBody(field);
  if (!hasResponseStream(method)) return ok({ [contentType]: { schema } });
  const forms = streamForms.offered.map((form) => [form.contentType, mediaOf(form, schema, openapi)]);
  return ok(Object.fromEntries(forms), "OK: a stream, in the format that the Accept header asks for");
}

// Describes google.api.HttpBody, which holds bytes with any media type. The media type "*/*" without a schema would be
// exact, but most generators would create methods that cannot send or return bytes.
const anyContent: OpenApiContent = { "application/octet-stream": { schema: { type: "string", format: "binary" } } };

// Returns the media type object for a stream. A stream is a sequence of items, unless the format is a JSON array.
function mediaOf({ kind }: StreamForm, schema: OpenApiSchema, openapi: OpenApiVersion): OpenApiMediaType {
  if (kind === "array") return schemaOf({ type: "array", items: schema });
  if (kind === "events") return openapi === "3.1.0" ? schemaOf(schema) : itemMediaType(eventOf(schema));
  const line = kind === "results" ? resultOf(schema) : schema;
  return openapi === "3.1.0" ? schemaOf(line) : itemMediaType(line);
}

/** Returns the schema for one line in a stream in grpc-gateway's format. */
function resultOf(schema: OpenApiSchema): OpenApiSchema {
  const error: OpenApiSchema = { type: "object", description: "The error record, on the last line." };
  return { type: "object", properties: { result: schema, error }, minProperties: 1, maxProperties: 1 };
}

function schemaOf(schema: OpenApiSchema): OpenApiMediaType {
  return { schema };
}

function itemMediaType(itemSchema: OpenApiSchema): OpenApiMediaType {
  return { itemSchema };
}

/** Returns a Server-Sent Event's schema. In OpenAPI 3.2, an event is an object with the message in `data`. */
function eventOf(schema: OpenApiSchema): OpenApiSchema {
  const data: OpenApiSchema = { type: "string", contentMediaType: "application/json", contentSchema: schema };
  const namedEvents: OpenApiSchema = { event: { enum: ["end", "error"] }, data: { type: "string" } };
  return {
    type: "object",
    properties: { retry: { type: "integer" } },
    required: ["data"],
    oneOf: [
      { properties: { data }, not: { required: ["event"] } },
      { properties: namedEvents, required: ["event"] },
    ],
  };
}

const firstSentence = /^(.+?)[.!?]?(?:\n\n|(?<=[.!?])\s+|$)/s;

// Returns an operation's summary and description. Both are set, because linters report an empty summary or description.
function summarize(method: DescMethod, comment = ""): Pick<OpenApiOperation, "summary" | "description"> {
  const [whole = "", sentence = method.name] = firstSentence.exec(comment) ?? [];
  const options = openApiOptionsOf(method);
  const summary = trimComment(options.summary ?? "") || sentence;
  const description = trimComment(options.description ?? "") || comment.slice(whole.length).trim();
  return {
    summary: summary.replaceAll("\n", " "),
    description: description || `The RPC \`${method.parent.typeName}.${method.name}\`.`,
  };
}

/** The options for {@link createSecurity}. */
export interface SecurityOptions {
  /** The security schemes, by name. */
  readonly securitySchemes?: Readonly<Record<string, OpenApiSecurityScheme>>;
  /**
   * The alternative security requirements for operations. A caller needs all credentials in one alternative, each with
   * the listed scopes. `{}` allows calls without a credential. Defaults to one alternative with all credentials in
   * {@link securitySchemes}.
   */
  readonly security?: readonly OpenApiSecurityRequirement[];
  /**
   * Returns an RPC's alternative security requirements. `[]` means that the RPC needs no credential, and `undefined`
   * means that {@link security} applies. `describeSecurity` from `createBearerAuth` creates a function for this option.
   */
  readonly describeSecurity?: (method: DescMethod) => readonly OpenApiSecurityRequirement[] | undefined;
}

interface Security {
  /** The security requirements for all operations without separate requirements. */
  readonly ofDocument: readonly OpenApiSecurityRequirement[];
  /** Returns an RPC's security requirements, or `undefined` if the document's requirements apply. */
  readonly ofMethod: (method: DescMethod) => readonly OpenApiSecurityRequirement[] | undefined;
}

/** Creates the security requirements. @throws TypeError for a credential that `securitySchemes` does not contain */
export function createSecurity({ securitySchemes = {}, security, describeSecurity }: SecurityOptions): Security {
  const names = Object.keys(securitySchemes);
  const all = Object.fromEntries(names.map((name) => [name, []]));
  // An empty array means that no credential is required. Linters report a document without `security`.
  const ofDocument = security ?? (names.length === 0 ? [] : [all]);
  refuseUnknownSchemes(ofDocument, names, "security of createOpenApi");
  const common = JSON.stringify(ofDocument);
  return {
    ofDocument,
    ofMethod(method) {
      const own = describeSecurity?.(method);
      if (own === undefined || JSON.stringify(own) === common) return undefined;
      refuseUnknownSchemes(
        own,
        names,
        `describeSecurity of createOpenApi, for ${method.parent.typeName}.${method.name}`,
      );
      return own;
    },
  };
}

function refuseUnknownSchemes(
  requirements: readonly OpenApiSecurityRequirement[],
  names: readonly string[],
  owner: string,
): void {
  const unknown = requirements.flatMap((requirement) => Object.keys(requirement)).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const nearest = nearestName(unknown, names);
  const hint = nearest === undefined ? `accepted are ${names.join(", ")}` : `did you mean "${nearest}"?`;
  throw withCode(new TypeError(`${owner}: "${unknown}" is not a name of securitySchemes; ${hint}`), "ERR_OPTIONS");
}
