import { anyMethod, type RestBinding } from "../protocols/index.ts";
import { describeOperation, type OperationNames, type OperationOptions } from "./operation.ts";
import type { OpenApiMethod, OpenApiOperation, OpenApiPathItem, OpenApiVersion } from "./open-api-document.ts";
import { type OpenApiPath, shapeOf, toOpenApiPath } from "./open-api-path.ts";

/** Called for a binding that the document cannot describe. */
export type OnOmitted = (binding: RestBinding, reason: string) => void;

type Operations = Map<string, OpenApiOperation>;

/**
 * Describes bindings in their order, grouped by path. A binding for all HTTP methods becomes an operation for each
 * method that a path item can have and that no other binding for the path has.
 *
 * Omits and reports bindings that OpenAPI cannot describe. OpenAPI 3.1 cannot describe custom HTTP methods. No version
 * can describe two paths with the same method that differ only in parameter names. Yields once per binding.
 */
export function* describePaths(
  bindings: readonly RestBinding[],
  options: OperationOptions,
  namesOf: (binding: RestBinding) => OperationNames,
  onOmitted: OnOmitted | undefined,
): Generator<void, Record<string, OpenApiPathItem>> {
  const paths = new Map<string, Operations>();
  const byShape = new Map<string, OpenApiPath>();
  const members = openApiMethods[options.openapi];
  // Bindings for every method come last, because other bindings take precedence.
  const [others, ofAny] = [bindings.filter((each) => !isOfAny(each)), bindings.filter(isOfAny)];
  for (const binding of [...others, ...ofAny]) {
    yield;
    const { httpMethod } = binding.pattern;
    if (options.openapi === "3.1.0" && !isOfAny(binding) && !members.has(httpMethod)) {
      onOmitted?.(binding, "OpenAPI 3.1 cannot describe this HTTP method; 3.2 can");
      continue;
    }
    const openApiPath = toOpenApiPath(binding.template);
    // Paths that differ only in parameter names get the first path's names, which requests do not contain.
    const shape = shapeOf(openApiPath.path);
    const { path, parameters: named } = byShape.get(shape) ?? openApiPath;
    byShape.set(shape, { path, parameters: named });
    const operations = paths.get(path) ?? new Map<string, OpenApiOperation>();
    paths.set(path, operations);
    const methods = isOfAny(binding) ? methodsOfAny(binding, members) : [httpMethod];
    const free = methods.filter((method) => !operations.has(method));
    if (free.length === 0) onOmitted?.(binding, `OpenAPI cannot distinguish it from the operation at ${path}`);
    const parameters = openApiPath.parameters.map((parameter, at) => ({
      ...parameter,
      name: named[at]?.name ?? parameter.name,
    }));
    for (const method of methods) {
      // Names omitted operations too, so that the numbers in ids do not depend on other RPCs.
      const names = namesOf(binding);
      if (free.includes(method)) operations.set(method, describeOperation(binding, names, parameters, options));
    }
  }
  return Object.fromEntries([...paths].map(([path, operations]) => [path, toPathItem(operations, members)]));
}

function isOfAny({ pattern }: RestBinding): boolean {
  return pattern.httpMethod === anyMethod;
}

type PathMembers = ReadonlyMap<string, OpenApiMethod>;

const methods31: PathMembers = new Map([
  ["GET", "get"],
  ["PUT", "put"],
  ["POST", "post"],
  ["DELETE", "delete"],
  ["OPTIONS", "options"],
  ["HEAD", "head"],
  ["PATCH", "patch"],
  ["TRACE", "trace"],
]);

/** The HTTP methods that are a path item's members. Methods are case-sensitive (RFC 9110 §9.1). */
const openApiMethods: Readonly<Record<OpenApiVersion, PathMembers>> = {
  "3.1.0": methods31,
  "3.2.0": new Map([...methods31, ["QUERY", "query"]]),
};

/** Returns the maximum number of a binding's operations in any version of OpenAPI. */
export function maxOperationsOf(binding: RestBinding): number {
  return isOfAny(binding) ? methodsOfAny(binding, openApiMethods["3.2.0"]).length : 1;
}

/** The methods for requests without a body (RFC 9110 §9.3.1, §9.3.2, §9.3.8). */
const withoutBody: ReadonlySet<string> = new Set(["GET", "HEAD", "TRACE"]);

function methodsOfAny({ pattern }: RestBinding, members: PathMembers): readonly string[] {
  return [...members.keys()].filter((method) => pattern.body === "" || !withoutBody.has(method));
}

function toPathItem(operations: Operations, members: PathMembers): OpenApiPathItem {
  const isMember = ([method]: readonly [string, OpenApiOperation]): boolean => members.has(method);
  const memberOperations = [...operations]
    .filter(isMember)
    .map(([method, operation]) => [members.get(method), operation]);
  const otherEntries = [...operations].filter((entry) => !isMember(entry));
  return {
    ...Object.fromEntries(memberOperations),
    ...(otherEntries.length > 0 && { additionalOperations: Object.fromEntries(otherEntries) }),
  };
}
