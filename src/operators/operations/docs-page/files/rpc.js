// The messages of the RPC behind an operation, for the tools of gRPC.

/**
 * @typedef {import("./description.js").Operation} Operation
 * @typedef {import("./description.js").Parameter} Parameter
 * @typedef {import("./description.js").Schema} Schema
 * @typedef {{ field: string | undefined, template: string, wildcards: string[] }} Variable a variable of a path
 *   template, or a wildcard outside of variables, and its wildcards in order
 */

/**
 * Lists the variables of a path template of google.api.http, in order. Each of their wildcards is a parameter of the
 * path.
 *
 * @param {string} path
 * @returns {Variable[]}
 */
function variablesOf(path) {
  return [...path.matchAll(/\{([^=}]+)(?:=([^}]*))?\}|\*\*?/g)].map(([whole, field, inside]) => {
    const template = inside ?? (field === undefined ? whole : "*");
    return { field, template, wildcards: template.match(/\*\*?/g) ?? [] };
  });
}

/**
 * Returns the names of the parameters that stand for any number of segments, slashes between them.
 *
 * @param {Operation} operation
 * @returns {Set<string>}
 */
export function parametersOfSegments({ object }) {
  const wildcards = variablesOf(object["x-rpc"]?.path ?? "").flatMap((variable) => variable.wildcards);
  const names = pathParametersOf(object).map(({ name }) => name);
  return new Set(names.filter((_, at) => wildcards[at] === "**"));
}

/**
 * Writes the messages of a request as JSON, one for each line of a stream, or else a single one.
 *
 * @param {Operation} operation
 * @param {ReadonlyMap<string, string>} values the parameters that were filled in, by place and name: `path id`
 * @param {string[]} bodies the JSON of the body, or that of each line
 * @returns {string[]}
 */
export function messagesOf({ object }, values, bodies) {
  const fields = { ...fieldsOfQuery(object, values) };
  for (const [field, value] of fieldsOfPath(object, values)) setField(fields, field, value);
  const { body = "" } = object["x-rpc"] ?? {};
  if (body === "" || bodies.length === 0) return [JSON.stringify(fields)];
  return bodies.map((text) => withBody(fields, body, text));
}

// As text, because numbers may have more digits than JavaScript keeps.
/**
 * @param {Record<string, unknown>} fields
 * @param {string} body
 * @param {string} text
 */
function withBody(fields, body, text) {
  if (body === "*") return joinObjects(JSON.stringify(fields), text);
  const { [body]: inside, ...others } = fields;
  const value = inside === undefined ? text : joinObjects(JSON.stringify(inside), text);
  return joinObjects(JSON.stringify(others), `{${JSON.stringify(body)}:${value}}`);
}

/**
 * @param {string} one
 * @param {string} other
 */
function joinObjects(one, other) {
  const members = [one, other].map((text) => text.trim().slice(1, -1).trim()).filter((text) => text !== "");
  return `{${members.join(",")}}`;
}

/**
 * @param {Operation["object"]} object
 * @param {ReadonlyMap<string, string>} values
 * @returns {[string, unknown][]}
 */
function fieldsOfPath(object, values) {
  const parameters = pathParametersOf(object);
  return variablesOf(object["x-rpc"]?.path ?? "").flatMap(({ field, template, wildcards }) => {
    const taken = parameters.splice(0, wildcards.length);
    const [first] = taken;
    const value = template.replaceAll(/\*\*?/g, () => values.get(`path ${taken.shift()?.name}`) ?? "");
    if (field === undefined || value === "") return [];
    return [[field, template === "*" ? toJson(first?.schema, value) : value]];
  });
}

/**
 * @param {Operation["object"]} object
 * @param {ReadonlyMap<string, string>} values
 */
function fieldsOfQuery(object, values) {
  const fields = {};
  for (const { name, schema, in: place } of object.parameters ?? []) {
    const value = place === "query" ? values.get(`query ${name}`) : undefined;
    if (value === undefined || value === "") continue;
    const isList = schema?.type === "array";
    setField(
      fields,
      name,
      isList ? value.split("\n").map((each) => toJson(schema.items, each)) : toJson(schema, value),
    );
  }
  return fields;
}

/** @param {Operation["object"]} object */
function pathParametersOf(object) {
  return (object.parameters ?? []).filter((parameter) => parameter.in === "path");
}

/**
 * @param {Record<string, unknown>} fields
 * @param {string} path names with dots between them
 * @param {unknown} value
 */
function setField(fields, path, value) {
  const dot = path.indexOf(".");
  const name = dot < 0 ? path : path.slice(0, dot);
  if (dot < 0) fields[name] = value;
  else fields[name] = withField(fields[name], path.slice(dot + 1), value);
}

/**
 * @param {unknown} message
 * @param {string} path
 * @param {unknown} value
 */
function withField(message, path, value) {
  const fields = { ...(typeof message === "object" ? message : {}) };
  setField(fields, path, value);
  return fields;
}

/**
 * @param {Schema | undefined} schema
 * @param {string} text
 */
function toJson({ type, format } = {}, text) {
  if (type === "boolean") return text === "true";
  // The JSON of protobuf writes integers of 64 bits as text.
  return type === "integer" && !format?.endsWith("64") ? Number(text) : text;
}
