/**
 * Creates an OpenAPI document from descriptors and compiled HTTP rules.
 *
 * Flow: rules → bindings (rest) → paths → operations → parameters and schemas. Messages and enums become components if
 * a schema refers to them. The document describes the bindings that serve requests, so the document and the server
 * cannot diverge.
 */
import type { DescMessage, DescMethod, DescService, JsonObject, JsonValue } from "@bufbuild/protobuf";
import {
  runInTurns,
  runSteps,
  arrayOf,
  type OptionNames,
  refuseUnknownOptions,
  required,
  withCode,
} from "../http/index.ts";
import { jsonOptionNames, type WriteJsonOptions } from "../protobuf/index.ts";
import {
  codeNames,
  compileInSteps,
  type ErrorForm,
  type ErrorPlaceholder,
  fillErrorBody,
  placeholderOf,
  contentTypeOf,
  errorFormats,
  errorFormOf,
  restOptionNames,
  type RestBinding,
  type RestOptions,
  serviceOptionsOf,
} from "../protocols/index.ts";
import { commentOf, type Comments, commentsOf } from "./comments.ts";
import type {
  OpenApiDocument,
  OpenApiInfo,
  OpenApiParameter,
  OpenApiResponse,
  OpenApiSchema,
  OpenApiServer,
  OpenApiVersion,
} from "./open-api-document.ts";
import type { FieldRules } from "./field-rules.ts";
import { createOperationIds, findOperationIdClash, type OperationIds, Tags } from "./operation-names.ts";
import { describePaths, type OnOmitted } from "./paths.ts";
import { Schemas } from "./schemas.ts";
import { createSecurity, type SecurityOptions } from "./operation.ts";

/** Options for {@link createOpenApi}, with information that the definition does not contain. */
export interface OpenApiOptions extends SecurityOptions {
  /**
   * The OpenAPI version. Default 3.1.0, because more tools support this version. OpenAPI 3.1 cannot describe streams,
   * so a stream's schema describes one message. In OpenAPI 3.2, a stream has an `itemSchema`.
   */
  readonly openapi?: OpenApiVersion;
  /** The document's metadata. If there is only one service, the description defaults to its comment. */
  readonly info: OpenApiInfo;
  /** The servers that serve the interface. Defaults to `/`, the server that serves the document. */
  readonly servers?: readonly OpenApiServer[];
  /**
   * The definition's comments, for summaries and descriptions. By default, the comments in the descriptors are used.
   * Descriptors in generated code have no comments.
   */
  readonly comments?: Comments;
  /** The option `rest` of the gateway that serves the interface. */
  readonly rest?: RestOptions;
  /** The option `jsonOptions` of the gateway that serves the interface. */
  readonly jsonOptions?: WriteJsonOptions;
  /**
   * The option `validation` of the gateway that serves the interface. The validation rules become keywords such as
   * `maxLength`. Responses may violate rules, because the gateway does not check responses.
   */
  readonly validation?: FieldRules;
  /** The option `mcp` of the gateway that serves the interface. Adds tool names to `x-rpc`. */
  readonly mcp?: ToolNames;
  /** The names in operation ids. Two RPCs with the same id are refused. Default `"service"`. */
  readonly operationIds?: OperationIds;
  /** The error responses. By default, 4XX and 5XX have the error format that `rest.errors` selects. */
  readonly errors?: readonly OpenApiError[];
  /** Returns the description of an RPC's successful response, such as "The order is deleted." */
  readonly describeSuccess?: (method: DescMethod) => string | undefined;
  /** Returns the header fields that an RPC accepts, in addition to HTTP's standard ones and the credential. */
  readonly describeHeader?: (method: DescMethod) => readonly Omit<OpenApiParameter, "in">[];
  /** Called for every binding that is omitted because OpenAPI cannot describe it. */
  readonly onOmitted?: OnOmitted;
}

/** The method of the `createMcp` result that returns the names of the AI agent tools. */
interface ToolNames {
  toolNamesOf(methods: readonly DescMethod[]): ReadonlyMap<DescMethod, string>;
}

/** An error response for every operation. */
export interface OpenApiError {
  /** The HTTP status, a range such as `4XX`, or `default`. */
  readonly status: string;
  readonly description: string;
  /** The body's schema, or a message type if the body always has all fields of the message. */
  readonly record: DescMessage | OpenApiSchema;
  /** The body's content type. Defaults to the content type of JSON responses, `rest.contentType`. */
  readonly contentType?: string;
  /** The field of `record` that contains a google.rpc.Code as a number. The field's schema lists the code names. */
  readonly codeField?: string;
  /** A body example. */
  readonly example?: JsonObject;
}

const openApiErrorNames: OptionNames<OpenApiError> = {
  status: required,
  description: required,
  record: required,
  contentType: true,
  codeField: true,
  example: true,
};

const openApiOptionNames: OptionNames<OpenApiOptions> = {
  openapi: true,
  info: required,
  servers: true,
  securitySchemes: true,
  security: arrayOf(),
  describeSecurity: true,
  comments: true,
  rest: restOptionNames,
  jsonOptions: jsonOptionNames,
  validation: true,
  mcp: true,
  operationIds: true,
  errors: arrayOf(openApiErrorNames),
  describeSuccess: true,
  describeHeader: true,
  onOmitted: true,
};

/**
 * Creates an OpenAPI document for the REST API of services.
 *
 * Nested messages are expanded in query parameters and examples, up to the limits in `field-budget.ts`. If fields are
 * omitted, the operation's description or the schema's `$comment` states the omission.
 *
 * @throws Error that lists every problem in the HTTP rules, or TypeError for unknown options and equal operation ids
 */
export function createOpenApi(services: readonly DescService[], options: OpenApiOptions): OpenApiDocument {
  return runSteps(describeServices(services, options));
}

/** Like {@link createOpenApi}, but works in short event loop turns. Rejects with the errors of `createOpenApi`. */
export function createOpenApiAsync(
  services: readonly DescService[],
  options: OpenApiOptions,
): Promise<OpenApiDocument> {
  return runInTurns(describeServices(services, options));
}

function* describeServices(
  services: readonly DescService[],
  options: OpenApiOptions,
): Generator<void, OpenApiDocument> {
  refuseUnknownOptions(options, openApiOptionNames, "createOpenApi");
  const { openapi = "3.1.0", rest = {}, jsonOptions = {}, securitySchemes } = options;
  const security = createSecurity(options);
  const comments = options.comments ?? (yield* commentsOf(services));
  const methods = services.flatMap((service) => service.methods);
  const { bindings } = yield* compileInSteps(methods, { ...rest, writeJson: jsonOptions });
  const abridging = bindings.filter((binding) => !binding.options.emitsImplicit);
  const abridged = yield* messagesIn(abridging.map(({ method }) => method.output));
  const closed = yield* closedMessages(bindings);
  const schemas = new Schemas({
    comments,
    useProtoFieldName: jsonOptions.useProtoFieldName ?? false,
    abridged,
    referencePrefix: "#/components/schemas/",
    closed,
    rules: options.validation,
    // Several services may share a type, so a schema allows numbers if any service writes 64-bit integers as numbers.
    int64Numbers: services.some((service) => serviceOptionsOf(service, rest).int64Numbers),
  });
  const tags = new Tags(services);
  const idOf = nameOperations(bindings, options.operationIds);
  const paths = yield* describePaths(
    bindings,
    {
      openapi,
      schemas,
      describeSuccess: options.describeSuccess,
      describeHeader: options.describeHeader,
      securityOf: security.ofMethod,
      toolNames: options.mcp?.toolNamesOf(methods),
      errors: describeErrors(options.errors ?? standardErrors(schemas, rest), schemas, contentTypeOf(rest)),
    },
    (binding) => ({ operationId: idOf(binding), tags: tags.namesOf(binding.method) }),
    options.onOmitted,
  );
  const bound = new Set(bindings.map(({ method }) => method.parent));
  const described = services.filter((service) => bound.has(service));
  const components = yield* schemas.components();
  const info = describeInfo(options.info, described, comments);
  return {
    openapi,
    info,
    servers: options.servers ?? [{ url: "/" }],
    security: security.ofDocument,
    tags: tags.describe(bindings, comments, info),
    paths,
    components: {
      ...(Object.keys(components).length > 0 && { schemas: components }),
      ...(securitySchemes !== undefined && { securitySchemes }),
    },
  };
}

/** Returns a function that returns an operation's id. @throws TypeError if two RPCs have equal ids */
function nameOperations(bindings: readonly RestBinding[], names?: OperationIds): (binding: RestBinding) => string {
  const idOf = createOperationIds(names);
  const clash = findOperationIdClash(bindings, names);
  if (clash !== undefined) throw withCode(new TypeError(clash), "ERR_OPTIONS");
  return ({ method }) => idOf(method);
}

/** Our extension `x-value-names`, with a name for each value of an integer field. */
const valueNames: OpenApiSchema = { "x-value-names": codeNames };

const textSchema: OpenApiSchema = { type: "string" };
const codeNumber: OpenApiSchema = {
  type: "integer",
  format: "int32",
  description: "The number of the google.rpc.Code.",
  ...valueNames,
};
const codeNameSchema: OpenApiSchema = { type: "string", description: "The name of the google.rpc.Code." };
const httpStatus: OpenApiSchema = { type: "integer", format: "int32", description: "The HTTP status." };
const details: OpenApiSchema = {
  type: "array",
  items: {
    type: "object",
    properties: { "@type": { type: "string" } },
    required: ["@type"],
    additionalProperties: true,
  },
};

interface NamedSchema {
  readonly name: string;
  readonly schema: OpenApiSchema;
}

/** The schema and the component name of each error format in `error-forms.ts` that has optional members. */
const errorSchemas: Readonly<Record<Exclude<ErrorForm, "status">, NamedSchema>> = {
  google: {
    name: "google.rpc.Error",
    schema: {
      type: "object",
      properties: {
        error: {
          type: "object",
          properties: { code: httpStatus, message: textSchema, status: codeNameSchema, details },
          required: ["code", "message", "status"],
        },
      },
      required: ["error"],
      examples: [{ error: { code: 404, message: "not found", status: "NOT_FOUND" } }],
    },
  },
  problem: {
    name: "ProblemDetails",
    schema: {
      type: "object",
      properties: {
        type: { type: "string", format: "uri-reference" },
        title: textSchema,
        status: httpStatus,
        detail: textSchema,
        code: codeNameSchema,
        details,
      },
      required: ["type", "status", "detail", "code"],
      examples: [{ type: "about:blank", title: "Not Found", status: 404, detail: "not found", code: "NOT_FOUND" }],
    },
  },
};

/** The format `status` as a template. */
const statusTemplate = { code: "{number}", status: "{code}", message: "{message}", details: "{details}" };

/** The schemas of the placeholders in `rest.errorBody`. */
const placeholderSchemas: Readonly<Record<ErrorPlaceholder, OpenApiSchema>> = {
  code: codeNameSchema,
  number: codeNumber,
  message: textSchema,
  details,
  httpStatus,
};

/** Returns the schema of a value in the template `rest.errorBody`. */
function schemaOfTemplate(value: JsonValue): OpenApiSchema {
  const placeholder = placeholderOf(value);
  if (placeholder !== undefined) return placeholderSchemas[placeholder];
  if (Array.isArray(value)) {
    const schemas = new Map(value.map(schemaOfTemplate).map((schema) => [JSON.stringify(schema), schema]));
    // An empty `anyOf` is not a valid schema.
    const items = schemas.size === 0 ? {} : { anyOf: [...schemas.values()] };
    return { type: "array", items, maxItems: value.length };
  }
  if (typeof value !== "object" || value === null) return { const: value };
  const properties = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, schemaOfTemplate(each)]));
  return { type: "object", properties, required: Object.keys(value) };
}

function schemaOfErrors(form: ErrorForm, ownTemplate: RestOptions["errorBody"]): NamedSchema {
  if (ownTemplate === undefined && form !== "status") return errorSchemas[form];
  const [name, template] = ownTemplate ? ["ErrorBody", ownTemplate] : ["google.rpc.Status", statusTemplate];
  const parts = { code: "NOT_FOUND", number: 5, httpStatus: 404, message: "not found", details: [] };
  return { name, schema: { ...schemaOfTemplate(template), examples: [fillErrorBody(template, parts)] } };
}

function standardErrors(schemas: Schemas, rest: RestOptions): readonly OpenApiError[] {
  const form = errorFormOf(rest);
  const { name, schema } = schemaOfErrors(form, rest.errorBody);
  const { contentType } = errorFormats[form];
  const body = { record: schemas.ofOther(name, schema), ...(contentType !== undefined && { contentType }) };
  return [
    { status: "4XX", description: "The request is refused. The status follows from the error code.", ...body },
    { status: "5XX", description: "The server has failed. The status follows from the error code.", ...body },
  ];
}

function describeErrors(
  errors: readonly OpenApiError[],
  schemas: Schemas,
  jsonType: string,
): Readonly<Record<string, OpenApiResponse>> {
  return Object.fromEntries(
    errors.map(({ status, description, record, contentType = jsonType, codeField, example }) => {
      const schema = isMessage(record) ? schemas.ofRecord(record, { [codeField ?? ""]: valueNames }) : record;
      const media = { schema, ...(example !== undefined && { example }) };
      return [status, { description, content: { [contentType]: media } }];
    }),
  );
}

function isMessage(record: DescMessage | OpenApiSchema): record is DescMessage {
  return record["kind"] === "message";
}

function describeInfo(info: OpenApiInfo, services: readonly DescService[], comments: Comments): OpenApiInfo {
  const [service] = services;
  const comment = service === undefined || services.length > 1 ? undefined : commentOf(comments, service);
  if (info.description !== undefined || comment === undefined) return info;
  const { title, version, summary, ...others } = info;
  return { title, version, ...(summary !== undefined && { summary }), description: comment, ...others };
}

/** Returns the request messages in which every binding refuses unknown fields. */
function* closedMessages(bindings: readonly RestBinding[]): Generator<void, ReadonlySet<DescMessage>> {
  const [strict, lenient] = [true, false].map((refuses) =>
    bindings.filter((binding) => binding.options.lenient !== refuses).map(({ method }) => method.input),
  );
  const open = yield* messagesIn(lenient ?? []);
  return new Set([...(yield* messagesIn(strict ?? []))].filter((desc) => !open.has(desc)));
}

/** Returns the given message types, and all message types that their fields use. Yields once per message. */
function* messagesIn(messages: readonly DescMessage[]): Generator<void, ReadonlySet<DescMessage>> {
  const found = new Set(messages);
  for (const { fields } of found) {
    for (const { message } of fields) if (message !== undefined) found.add(message);
    yield;
  }
  return found;
}
