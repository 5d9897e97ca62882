import type { DescService } from "@bufbuild/protobuf";
import type { RestBinding } from "../protocols/rest/rules/index.ts";
import { describeOperation, type OperationOptions } from "./operation.ts";
import { type OpenApiMethod, openApiMethods, type OpenApiOperation } from "./open-api-document.ts";
import { type OpenApiPath, shapeOf, toOpenApiPath } from "./open-api-path.ts";

/** Called for a binding that the document cannot describe. */
export type OnOmitted = (binding: RestBinding, reason: string) => void;

type PathItems = Record<string, Partial<Record<OpenApiMethod, OpenApiOperation>>>;

/**
 * Describes bindings in their order, grouped by path and tagged by service.
 *
 * Leaves out and reports what OpenAPI cannot describe: custom HTTP methods, and paths that differ from an earlier path
 * with the same method only in parameter names. Yields once per binding.
 */
export function* describePaths(
  bindings: readonly RestBinding[],
  options: OperationOptions,
  tagOf: (service: DescService) => string,
  onOmitted: OnOmitted | undefined,
): Generator<void, PathItems> {
  const paths: PathItems = {};
  const byShape = new Map<string, OpenApiPath>();
  const idOf = nameOperations(bindings);
  for (const binding of bindings) {
    yield;
    const method = openApiMethods.find((name) => name.toUpperCase() === binding.pattern.httpMethod);
    if (method === undefined) {
      onOmitted?.(binding, "OpenAPI cannot describe this HTTP method");
      continue;
    }
    const openApiPath = toOpenApiPath(binding.template);
    // If the path differs from an earlier one only in parameter names, it gets the earlier names. Requests do not
    // contain parameter names, so callers see no difference.
    const shape = shapeOf(openApiPath.path);
    const { path, parameters: named } = byShape.get(shape) ?? openApiPath;
    byShape.set(shape, { path, parameters: named });
    const item = (paths[path] ??= {});
    if (item[method] !== undefined) {
      onOmitted?.(binding, `OpenAPI cannot distinguish it from the operation at ${path}`);
      continue;
    }
    const parameters = openApiPath.parameters.map((parameter, at) => ({
      ...parameter,
      name: named[at]?.name ?? parameter.name,
    }));
    const names = { operationId: idOf(binding), tag: tagOf(binding.method.parent) };
    item[method] = describeOperation(binding, names, parameters, options);
  }
  return paths;
}

/**
 * Creates the function that names operations by their RPCs, so that every generator produces the same names:
 * `deleteOrder`, or `OrderService_deleteOrder` if the name is ambiguous; further bindings get a number.
 */
function nameOperations(bindings: readonly RestBinding[]): (binding: RestBinding) => string {
  const byName = Map.groupBy(new Set(bindings.map(({ method }) => method)), ({ localName }) => localName);
  const counts = new Map<string, number>();
  return ({ method: { localName, parent } }) => {
    const base = byName.get(localName)?.length === 1 ? localName : `${parent.name}_${localName}`;
    const count = (counts.get(base) ?? 0) + 1;
    counts.set(base, count);
    return count === 1 ? base : `${base}_${count}`;
  };
}
