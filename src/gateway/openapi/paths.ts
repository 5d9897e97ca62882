import type { DescService } from "@bufbuild/protobuf";
import type { RestBinding } from "../rest/index.ts";
import { describeOperation, type OperationOptions } from "./operation.ts";
import { type OpenApiMethod, openApiMethods, type OpenApiOperation } from "./open-api-document.ts";
import { type OpenApiPath, shapeOf, toOpenApiPath } from "./open-api-path.ts";

/** Told of a binding that a document has no place for. */
export type OnOmitted = (binding: RestBinding, reason: string) => void;

type PathItems = Record<string, Partial<Record<OpenApiMethod, OpenApiOperation>>>;

/**
 * Describes bindings by their paths, in their order.
 *
 * Two things cannot be described: methods that a path item has no member for (custom kinds), and of several
 * paths that differ only in the names or the reach of their parameters, all but the first with a method.
 */
export function describePaths(
  bindings: readonly RestBinding[],
  options: OperationOptions,
  onOmitted: OnOmitted | undefined,
): PathItems {
  const paths: PathItems = {};
  const byShape = new Map<string, OpenApiPath>();
  const ids = new OperationIds(bindings);
  for (const binding of bindings) {
    const method = openApiMethods.find((name) => name.toUpperCase() === binding.pattern.httpMethod);
    if (method === undefined) {
      onOmitted?.(binding, "OpenAPI has no operation for this method");
      continue;
    }
    const own = toOpenApiPath(binding.template);
    const { path } = memoize(byShape, shapeOf(own.path), own);
    const item = (paths[path] ??= {});
    if (item[method] !== undefined) {
      onOmitted?.(binding, `OpenAPI cannot tell it from the operation that is described at ${path}`);
      continue;
    }
    // A path that is there under other names is described under those: they have no meaning on the wire.
    const names = namesIn(path);
    const parameters = own.parameters.map((parameter, at) => ({ ...parameter, name: names[at] ?? parameter.name }));
    item[method] = describeOperation(binding, ids.of(binding), parameters, options);
  }
  return paths;
}

function memoize<Value>(map: Map<string, Value>, key: string, value: Value): Value {
  if (!map.has(key)) map.set(key, value);
  return map.get(key) ?? value;
}

function namesIn(path: string): readonly string[] {
  return [...path.matchAll(/\{([^}]*)\}/g)].map(([, name = ""]) => name);
}

/** Names operations after their RPCs, so that every generator makes the same names of them. */
class OperationIds {
  readonly #services: ReadonlySet<DescService>;
  readonly #shared: ReadonlySet<string>;
  readonly #count = new Map<string, number>();

  constructor(bindings: readonly RestBinding[]) {
    const methods = [...new Set(bindings.map(({ method }) => method))];
    const groups = Map.groupBy(methods, (method) => method.localName);
    this.#services = new Set(methods.map((method) => method.parent));
    this.#shared = new Set([...groups].filter(([, group]) => group.length > 1).map(([name]) => name));
  }

  /** `deletePlant`; `PlantService_deletePlant` where two services have one; a number behind all but the first. */
  of({ method }: RestBinding): { readonly operationId: string; readonly tag: string | undefined } {
    const base = this.#shared.has(method.localName) ? `${method.parent.name}_${method.localName}` : method.localName;
    const count = (this.#count.get(base) ?? 0) + 1;
    this.#count.set(base, count);
    return {
      operationId: count === 1 ? base : `${base}_${count}`,
      // One service needs no grouping.
      tag: this.#services.size > 1 ? method.parent.name : undefined,
    };
  }
}
