import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { findField, type FieldPath, resolveFieldPath } from "../rest/field-path.ts";
import type { RestBinding } from "../rest/index.ts";
import { commentOf } from "./comments.ts";
import { toFieldsElsewhere } from "./fields-elsewhere.ts";
import type {
  OpenApiContent,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiResponse,
  OpenApiSchema,
} from "./open-api-document.ts";
import type { PathParameter } from "./open-api-path.ts";
import { describePathParameter, describeQuery, type ParameterOptions } from "./parameters.ts";
import type { FieldsElsewhere } from "./schemas.ts";

/** What operations are described with. */
export interface OperationOptions extends ParameterOptions {
  readonly emptyResponse: 200 | 204;
  /** What the answer to success says of itself; `undefined` for what HTTP calls its status. */
  readonly describeSuccess: (method: DescMethod) => string | undefined;
  /** The answers to failure, the same for every operation. */
  readonly errors: Readonly<Record<string, OpenApiResponse>>;
}

/** How an operation is called in the document. */
export interface OperationNames {
  readonly operationId: string;
  readonly tag: string | undefined;
}

/** Describes what one binding takes and what it answers. */
export function describeOperation(
  { method, pattern, template }: RestBinding,
  { operationId, tag }: OperationNames,
  pathParameters: readonly PathParameter[],
  options: OperationOptions,
): OpenApiOperation {
  const { input } = method;
  const variables = template.variables.map(({ fieldPath }) => resolveFieldPath(input, fieldPath));
  const inPath = toFieldsElsewhere(variables.filter((path): path is FieldPath => path !== undefined));
  const parameters: readonly OpenApiParameter[] = [
    ...pathParameters.map((parameter) => describePathParameter(input, parameter, options)),
    ...describeQuery(input, withBody(input, pattern.body, inPath), options),
  ];
  const body = schemaOfBody(input, pattern.body, inPath, options);
  return {
    operationId,
    ...summarize(commentOf(options.comments, method)),
    ...(tag !== undefined && { tags: [tag] }),
    ...(method.deprecated && { deprecated: true }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: { content: inJson(body) } }),
    responses: { ...describeSuccess(method, pattern.responseBody, options), ...options.errors },
  };
}

// The body takes its field, or with "*" all fields, out of the query.
function withBody(input: DescMessage, body: string, inPath: FieldsElsewhere): FieldsElsewhere {
  if (body === "*") return new Map(input.fields.map((field) => [field, "whole"]));
  const field = findField(input, body);
  return field === undefined ? inPath : new Map([...inPath, [field, "whole"]]);
}

function schemaOfBody(
  input: DescMessage,
  body: string,
  inPath: FieldsElsewhere,
  { schemas }: OperationOptions,
): OpenApiSchema | undefined {
  if (body === "*") return inPath.size === 0 ? schemas.ofMessage(input) : schemas.ofObject(input, inPath);
  const field = findField(input, body);
  const except = field && inPath.get(field);
  return field && schemas.ofField(field, except === "whole" ? undefined : except);
}

function describeSuccess(
  method: DescMethod,
  responseBody: string,
  { schemas, emptyResponse, describeSuccess: describe }: OperationOptions,
): Readonly<Record<string, OpenApiResponse>> {
  const { output } = method;
  const field = findField(output, responseBody);
  // RFC 9110 §15.3.1 and §15.3.5 name the two.
  if (field === undefined && output.typeName === "google.protobuf.Empty" && emptyResponse === 204) {
    return { "204": { description: describe(method) ?? "No Content" } };
  }
  const schema = field === undefined ? schemas.ofMessage(output) : schemas.ofWhole(field);
  return { "200": { description: describe(method) ?? "OK", content: inJson(schema) } };
}

/** A body in JSON. */
export function inJson(schema: OpenApiSchema): OpenApiContent {
  return { "application/json": { schema } };
}

// The first sentence of a comment, and what is left behind it.
const firstSentence = /^(.+?)[.!?]?(?:\n\n|(?<=[.!?])\s+|$)/s;

function summarize(comment: string | undefined): { readonly summary?: string; readonly description?: string } {
  const [whole = "", sentence] = firstSentence.exec(comment ?? "") ?? [];
  if (comment === undefined || sentence === undefined) return {};
  const description = comment.slice(whole.length).trim();
  return { summary: sentence.replaceAll("\n", " "), ...(description !== "" && { description }) };
}
