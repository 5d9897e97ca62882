import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { requiredScopesOf } from "@protoport/auth";
import { createOperationIds, type OperationIds } from "@protoport/gateway/openapi-checks";
import { type RestBinding, type RestOptions, selectorOf, checkRestRoutes } from "@protoport/gateway/rest";
import { type Change, ChangeList } from "./change.ts";
import type { SourceElement } from "./source-line.ts";
import { type CompareRules, MessageComparison } from "./compare-messages.ts";
import { requestOf, type RoutePair, bindingSubjectOf } from "./compare-bindings.ts";
import { compareRoutes, type RoutedMethods } from "./compare-routes.ts";
import { compareVisibility } from "./compare-visibility.ts";

/** Creates a comparison for validation rules, which requires protovalidate. */
export type OpenRules = (changes: ChangeList) => CompareRules;

/** The options of the gateway that serves both versions, and of its OpenAPI document. */
interface ComparedOptions {
  readonly rest?: RestOptions;
  readonly operationIds?: OperationIds | undefined;
}

/**
 * Compares two service versions with the same options.
 *
 * @returns the changes to routes, operation ids, bodies, rules and visibility that break clients
 * @throws Error if the versions have no package in common
 */
export function compareServices(
  before: readonly DescService[],
  now: readonly DescService[],
  { rest = {}, operationIds }: ComparedOptions,
  openRules: OpenRules,
): readonly Change[] {
  refuseOtherPackages(before, now);
  const changes = new ChangeList();
  const [old, current] = [routed(before, rest), routed(now, rest)];
  const services = new Map(now.map((service) => [service.typeName, service]));
  const reportedElementOf = ({ parent, name }: DescMethod): SourceElement => {
    const service = services.get(parent.typeName);
    return service?.methods.find((method) => method.name === name) ?? service ?? parent.file;
  };
  for (const service of before) compareMethods(service, services.get(service.typeName), reportedElementOf, changes);
  const pairs = compareRoutes(old, current, changes, reportedElementOf);
  compareOperationIds(pairs, [old, current], operationIds, changes);
  const messages = new MessageComparison(changes, openRules(changes));
  for (const { request, old: oldMethod, method } of calledMethods(before, current, pairs)) {
    messages.compare(oldMethod.input, method.input, { direction: "request", request });
    messages.compare(oldMethod.output, method.output, { direction: "response", request });
  }
  return changes.sorted();
}

function refuseOtherPackages(before: readonly DescService[], now: readonly DescService[]): void {
  const [old, current] = [before, now].map((services) => new Set(services.map(({ file }) => file.proto.package)));
  if (old === undefined || current === undefined || [...old].some((name) => current.has(name))) return;
  throw new Error(`it has the packages ${listNames(old)}, and the definition has ${listNames(current)}`);
}

function listNames(names: ReadonlySet<string>): string {
  return [...names].toSorted().join(", ");
}

function routed(services: readonly DescService[], rest: RestOptions): RoutedMethods {
  const methods = services.flatMap((service) => service.methods);
  const byName = new Map(methods.map((method) => [selectorOf(method), method]));
  return { methods: byName, routes: checkRestRoutes(methods, rest).routes };
}

function compareMethods(
  before: DescService,
  now: DescService | undefined,
  reportedElementOf: (method: DescMethod) => SourceElement,
  changes: ChangeList,
): void {
  compareVisibility(before, now ?? { missingIn: before.file }, before.typeName, changes);
  for (const old of now === undefined ? [] : before.methods) {
    const method = now?.methods.find(({ name }) => name === old.name);
    compareVisibility(old, method ?? { missingIn: reportedElementOf(old) }, selectorOf(old), changes);
    if (method !== undefined) compareScopes(old, method, changes);
  }
}

/** Reports scopes that the option `protoport.auth.v1.required_scopes` has added. */
function compareScopes(before: DescMethod, now: DescMethod, changes: ChangeList): void {
  const [old = [], scopes = []] = [requiredScopesOf(before), requiredScopesOf(now)];
  const added = scopes.filter((scope) => !old.includes(scope));
  if (added.length === 0) return;
  changes.add("scopes-changed", selectorOf(before), now, {
    change: `protoport.auth.v1.required_scopes also requires ${added.join(", ")}`,
    before: old.length === 0 ? "any valid token is accepted" : `a token with ${old.join(", ")} is accepted`,
    now: "403, unless the token has all required scopes",
  });
}

/** Reports routes with another operation id, after which generated clients name a method. */
function compareOperationIds(
  pairs: readonly RoutePair[],
  versions: readonly RoutedMethods[],
  operationIds: OperationIds | undefined,
  changes: ChangeList,
): void {
  const ids = new Map<RestBinding, string>();
  for (const { routes } of versions) {
    const idOf = createOperationIds(operationIds);
    for (const binding of routes.bindings) ids.set(binding, idOf(binding.method));
  }
  for (const { before, now } of pairs) {
    const [old, id] = [ids.get(before), ids.get(now)];
    if (id === old) continue;
    changes.add("operation-id-changed", bindingSubjectOf(before), now.method, {
      change: `the operation id in the OpenAPI document is ${id}`,
      before: `generated clients called ${requestOf(before)} by ${old}`,
      now: `clients generated again call it by ${id}`,
    });
  }
}

/** Returns the RPCs in both versions, each with an example request. A renamed RPC is included if it kept its route. */
function calledMethods(
  before: readonly DescService[],
  now: RoutedMethods,
  pairs: readonly RoutePair[],
): readonly { readonly request: string; readonly old: DescMethod; readonly method: DescMethod }[] {
  const routes = new Map(pairs.map((pair) => [pair.before.method, pair]));
  return before
    .flatMap((service) => service.methods)
    .flatMap((old) => {
      const pair = routes.get(old);
      const method = now.methods.get(selectorOf(old)) ?? pair?.now.method;
      if (method === undefined) return [];
      const request = pair === undefined ? `POST /${old.parent.typeName}/${old.name}` : requestOf(pair.before);
      return [{ request, old, method }];
    });
}
