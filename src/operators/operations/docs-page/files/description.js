// The parts of an OpenAPI document that the page shows, and how to find them in it.

/**
 * @typedef {{
 *   $ref?: string, type?: string, format?: string, pattern?: string, enum?: string[], description?: string,
 *   deprecated?: boolean,
 *   readOnly?: boolean, writeOnly?: boolean, items?: Schema, additionalProperties?: Schema | boolean, anyOf?: Schema[],
 *   properties?: Record<string, Schema>, required?: string[], examples?: unknown[],
 *   "x-value-names"?: Record<string, string>,
 * }} Schema
 * @typedef {{
 *   name: string, in: string, required?: boolean, deprecated?: boolean, description?: string, schema?: Schema,
 * }} Parameter
 * @typedef {{ schema?: Schema, itemSchema?: Schema, example?: unknown }} Media
 * @typedef {Record<string, Media>} Content
 * @typedef {{ description: string, content?: Content }} Response
 * @typedef {{ procedure: string, path: string, body?: string }} Rpc
 * @typedef {{
 *   operationId?: string, summary?: string, description?: string, tags?: string[], deprecated?: boolean,
 *   parameters?: Parameter[], requestBody?: { required?: boolean, content: Content },
 *   responses: Record<string, Response>, "x-rpc"?: Rpc,
 * }} OperationObject
 * @typedef {{
 *   info: {
 *     title: string, version: string, description?: string,
 *     license?: { name: string }, contact?: { name?: string, url?: string, email?: string },
 *   },
 *   servers?: { url: string, description?: string }[],
 *   security?: unknown[],
 *   tags?: { name: string, description?: string }[],
 *   paths: Record<string, Record<string, OperationObject>>,
 *   components?: { schemas?: Record<string, Schema> },
 * }} Description
 * @typedef {{ id: string, path: string, method: string, object: OperationObject }} Operation
 * @typedef {{ name: string, description?: string, operations: Operation[] }} Group
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
      .map(([method, object]) => ({
        id: object.operationId ?? `${method} ${path}`,
        path,
        method: method.toUpperCase(),
        object,
      })),
  );
}

/**
 * Groups the operations by their first tag, in the order of the tags; those without one come last.
 *
 * @param {Description} description
 * @returns {Group[]}
 */
export function groupsOf(description) {
  /** @type {Map<string, Group>} */
  const groups = new Map((description.tags ?? []).map((tag) => [tag.name, { ...tag, operations: [] }]));
  for (const operation of operationsOf(description)) {
    const name = operation.object.tags?.[0] ?? "Operations";
    const group = groups.get(name) ?? { name, operations: [] };
    group.operations.push(operation);
    groups.set(name, group);
  }
  return [...groups.values()].filter(({ operations }) => operations.length > 0);
}

/**
 * Returns the title of an operation: its summary, or else its id.
 *
 * @param {Operation} operation
 * @returns {string}
 */
export function titleOf({ id, object }) {
  return object.summary ?? id;
}

/**
 * Returns the name that a reference has in the components.
 *
 * @param {Schema} schema
 * @returns {string | undefined}
 */
export function nameOf({ $ref }) {
  return $ref?.split("/").at(-1);
}

/**
 * Follows a reference into the components.
 *
 * @param {Description} description
 * @param {Schema | undefined} schema
 * @returns {Schema}
 */
export function resolveSchema(description, schema = {}) {
  const name = nameOf(schema);
  return name === undefined ? schema : { ...description.components?.schemas?.[name], ...schema };
}

/**
 * Returns the response that an operation has for a status: that of the status, of its range, or the default.
 *
 * @param {Operation} operation
 * @param {number} status
 * @returns {Response | undefined}
 */
export function responseOf({ object: { responses } }, status) {
  return responses[status] ?? responses[`${Math.floor(status / 100)}XX`] ?? responses["default"];
}

/**
 * Returns the media type in which a body is shown and sent, with its schema: the first one of a stream, otherwise JSON
 * if that is among them.
 *
 * @param {Content | undefined} content
 * @returns {{ type: string, media: Media } | undefined}
 */
export function mainMediaOf(content = {}) {
  const types = Object.keys(content);
  const type = types.some(isLines) ? types[0] : (types.find((each) => each === "application/json") ?? types[0]);
  const media = type === undefined ? undefined : content[type];
  return type === undefined || media === undefined ? undefined : { type, media };
}

/**
 * Returns whether a media type is a text with a message on each line.
 *
 * @param {string} type
 * @returns {boolean}
 */
export function isLines(type) {
  return /^application\/(x-ndjson|jsonl)\b/.test(type);
}
