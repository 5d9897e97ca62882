// The parts of an OpenAPI document that the page shows, and how to find them in it.

/**
 * @typedef {{
 *   $ref?: string, type?: string, format?: string, enum?: string[], description?: string, items?: Schema,
 *   properties?: Record<string, Schema>, required?: string[],
 * }} Schema
 * @typedef {{ name: string, in: string, required?: boolean, description?: string, schema?: Schema }} Parameter
 * @typedef {Record<string, { schema?: Schema }>} Content
 * @typedef {{ description: string, content?: Content }} Response
 * @typedef {{
 *   operationId: string, summary?: string, description?: string, deprecated?: boolean,
 *   parameters?: Parameter[], requestBody?: { content: Content }, responses: Record<string, Response>,
 * }} OperationObject
 * @typedef {{
 *   info: { title: string, version: string, description?: string, license?: { name: string } },
 *   security?: unknown[],
 *   paths: Record<string, Record<string, OperationObject>>,
 *   components?: { schemas?: Record<string, Schema> },
 * }} Description
 * @typedef {{ path: string, method: string, object: OperationObject }} Operation
 */

const methods = new Set(["get", "put", "post", "delete", "options", "head", "patch", "trace"]);

/**
 * Lists the operations of a description, in order.
 *
 * @param {Description} description
 * @returns {Operation[]}
 */
export function operationsOf(description) {
  return Object.entries(description.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => methods.has(method))
      .map(([method, object]) => ({ path, method: method.toUpperCase(), object })),
  );
}

/**
 * Follows a reference into the components.
 *
 * @param {Description} description
 * @param {Schema | undefined} schema
 * @returns {Schema}
 */
export function resolveSchema(description, schema = {}) {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : { ...description.components?.schemas?.[name], ...schema };
}

/**
 * Describes in a few words which values a schema accepts.
 *
 * @param {Description} description
 * @param {Schema | undefined} schema
 * @returns {string}
 */
export function kindOf(description, schema) {
  const { type = "any", format, items } = resolveSchema(description, schema);
  if (type === "array") return `list of ${kindOf(description, items)}`;
  return format === undefined ? type : `${type}, ${format}`;
}

/**
 * Returns the schema of a JSON body, if there is one.
 *
 * @param {Content | undefined} content
 * @returns {Schema | undefined}
 */
export function jsonSchemaOf(content) {
  return content?.["application/json"]?.schema;
}
