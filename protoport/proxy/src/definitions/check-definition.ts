import { findOperationIdClash, type OperationIds, unsupportedOpenApiOptions } from "@protoport/gateway/openapi-checks";
import { messageOf } from "@protoport/gateway/errors";
import { type OptionNames, refuseUnknownOptions } from "@protoport/gateway/options";
import { type RestBinding, type RestOptions, checkRestRoutes, withoutRpcs } from "@protoport/gateway/rest";
import type { Definition } from "./definition.ts";
import { checkTools, type CheckedTools } from "./check-tools.ts";

/** The options of the gateway that would serve a definition. */
export interface CheckOptions {
  /** The option `rest` of `createGateway`. */
  readonly rest?: RestOptions;
  /** The option `operationIds` of `createOpenApi`. */
  readonly operationIds?: OperationIds;
  /** Selects the RPCs that are tools for AI agents. `package.*` selects a package. By default, no tools are checked. */
  readonly tools?: readonly string[];
}

const checkOptionNames: OptionNames<CheckOptions> = { rest: true, operationIds: true, tools: true };

/** The routes and problems that a gateway with a definition would have. */
export interface CheckResult {
  /** The bindings of all valid rules. */
  readonly bindings: readonly RestBinding[];
  /** The problems for which `createGateway` or `createOpenApi` would throw. Empty if the gateway would start. */
  readonly problems: readonly string[];
  /** The `openapiv2_*` fields and `openapiv3_*` options that OpenAPI documents do not use, each with the descriptors that set the field. */
  readonly unsupportedOptions: ReadonlyMap<string, readonly string[]>;
  /** The tools for AI agents, or `undefined` without tool selectors. */
  readonly tools: CheckedTools | undefined;
}

/** Checks whether a gateway would start with a definition. Nothing is served. @throws TypeError for unknown options */
export async function checkDefinition(
  { services, hiddenRpcs }: Definition,
  options: CheckOptions = {},
): Promise<CheckResult> {
  refuseUnknownOptions(options, checkOptionNames, "checkDefinition");
  const { rest: given = {}, operationIds, tools: selectors = [] } = options;
  const rest = withoutRpcs(given, hiddenRpcs);
  const methods = services.flatMap((service) => service.methods);
  const { bindings } = checkRestRoutes(methods, rest).routes;
  const unsupportedOptions = unsupportedOpenApiOptions(services);
  const tools = selectors.length === 0 ? undefined : await checkTools(selectors, methods);
  const clash = findOperationIdClash(bindings, operationIds);
  const problems = [...(await ruleProblemsOf(services, rest)), ...(clash === undefined ? [] : [clash])];
  return { bindings, problems, unsupportedOptions, tools };
}

async function ruleProblemsOf(services: Definition["services"], rest: RestOptions): Promise<readonly string[]> {
  // A static import would make the bundler split the package's main entry into several files.
  const { createGateway } = await import("@protoport/gateway");
  try {
    createGateway({ routes: (router) => services.forEach((service) => router.service(service, {})), rest });
    return [];
  } catch (error) {
    // If a message has several lines, the first line is a heading.
    const [first = "", ...others] = messageOf(error).split("\n");
    return others.length === 0 ? [first] : others;
  }
}
