/** The schema members that the page shows. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly readOnly?: boolean;
  readonly writeOnly?: boolean;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly examples?: readonly unknown[];
  readonly "x-value-names"?: Readonly<Record<string, string>>;
}

/** A path parameter, a query or a header. */
export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly deprecated?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
  readonly "x-field"?: readonly string[];
}

/** A body in one media type. */
export interface Media {
  readonly schema?: Schema;
  readonly itemSchema?: Schema;
  readonly example?: unknown;
}

/** The schemas and examples of a body, by media type. */
export type Content = Readonly<Record<string, Media>>;

/** An operation's response (Response Object). */
interface ResponseObject {
  readonly description: string;
  readonly content?: Content;
}

/** The credentials that a call needs, each with its scopes (Security Requirement Object). */
type Requirement = Readonly<Record<string, readonly string[]>>;

/** An API operation (Operation Object). */
export interface OperationObject {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly deprecated?: boolean;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, ResponseObject>>;
  readonly security?: readonly Requirement[];
  readonly "x-rpc"?: {
    readonly procedure: string;
    readonly path: string;
    readonly body?: string;
    readonly tool?: string;
  };
}

const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"] as const;

/** A path's operations, by method, and `additionalOperations` (Path Item Object). */
type PathItem = Readonly<Partial<Record<(typeof methods)[number], OperationObject>>> & {
  readonly additionalOperations?: Readonly<Record<string, OperationObject>>;
};

/** The OpenAPI document members that the page shows. */
export interface Description {
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description?: string;
    readonly license?: { readonly name: string };
    readonly contact?: { readonly name?: string; readonly url?: string; readonly email?: string };
  };
  readonly servers?: readonly { readonly url: string; readonly description?: string }[];
  readonly security?: readonly Requirement[];
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

/** An operation, with the id for links to the operation. */
export interface Operation {
  readonly id: string;
  readonly path: string;
  readonly method: string;
  readonly object: OperationObject;
}

/** The operations with the same first tag. */
export interface Group {
  readonly name: string;
  readonly description?: string;
  readonly operations: Operation[];
}

/** Returns whether an operation requires a credential. The empty alternative `{}` requires no credential. */
export function needsCredential({ security = [] }: Description, operation: OperationObject): boolean {
  const alternatives = operation.security ?? security;
  return alternatives.length > 0 && alternatives.every((each) => Object.keys(each).length > 0);
}

/** Returns a line about the credential or the scopes that an operation needs, or nothing if others need the same. */
export function accessOf(
  description: Description,
  { security }: OperationObject,
): readonly [string, string] | undefined {
  const { security: ofDocument = [] } = description;
  if (security !== undefined && !needsCredential(description, { responses: {}, security }))
    return ["No credential", ""];
  const alternatives = (security ?? ofDocument).map((each) => [...new Set(Object.values(each).flat())].join(" "));
  const scopes = [...new Set(alternatives.filter((each) => each !== ""))].join(" or ");
  return scopes === "" ? undefined : ["Scopes ", scopes];
}

/** Lists a description's operations, in order. */
export function operationsOf({ paths }: Description): Operation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    methodsOf(item).map(([method, object]) => ({
      id: object.operationId ?? `${method} ${path}`,
      path,
      method,
      object,
    })),
  );
}

function methodsOf({ additionalOperations = {}, ...item }: PathItem): readonly (readonly [string, OperationObject])[] {
  const others = Object.entries(additionalOperations);
  const own = Object.entries(item).filter(([name]) => methods.some((method) => method === name));
  return [...own.map(([name, object]) => [name.toUpperCase(), object] as const), ...others];
}

/** Groups the operations by their first tag, declared tags first. Operations without a tag come last. */
export function groupsOf(description: Description): Group[] {
  const groups = new Map<string, Group>((description.tags ?? []).map((tag) => [tag.name, { ...tag, operations: [] }]));
  const untagged: Group = { name: "Operations", operations: [] };
  for (const operation of operationsOf(description)) {
    const [name] = operation.object.tags ?? [];
    const group = name === undefined ? untagged : (groups.get(name) ?? { name, operations: [] });
    group.operations.push(operation);
    if (name !== undefined) groups.set(name, group);
  }
  return [...groups.values(), untagged].filter(({ operations }) => operations.length > 0);
}

/** Returns an operation's title, which is the summary or, without a summary, the id. */
export function titleOf({ id, object }: Operation): string {
  return object.summary ?? id;
}

/** Returns a referenced component's name. */
export function nameOf({ $ref }: Schema): string | undefined {
  return $ref?.split("/").at(-1);
}

/** Follows a reference into the components. */
export function resolveSchema(description: Description, schema: Schema = {}): Schema {
  const name = nameOf(schema);
  return name === undefined ? schema : { ...description.components?.schemas?.[name], ...schema };
}

/** Returns the response for a status. Prefers the exact status, then the range, such as `4XX`, then the default. */
export function responseOf({ object: { responses } }: Operation, status: number): ResponseObject | undefined {
  return responses[status] ?? responses[`${Math.floor(status / 100)}XX`] ?? responses["default"];
}

/** Returns the media type in which a body is shown and sent, with its schema. Prefers JSON lines, then JSON. */
export function mainMediaOf(content: Content = {}): { readonly type: string; readonly media: Media } | undefined {
  const types = Object.keys(content);
  const type = types.find(isLines) ?? types.find((each) => each === "application/json") ?? types[0];
  const media = type === undefined ? undefined : content[type];
  return type === undefined || media === undefined ? undefined : { type, media };
}

/** Returns whether a body is binary instead of JSON. */
export function isBytes({ schema }: Media): boolean {
  return schema?.format === "binary";
}

/** Returns whether a media type has one message per line. */
export function isLines(type: string): boolean {
  return /^application\/(x-ndjson|jsonl)\b/.test(type);
}
