import type { DescService } from "@bufbuild/protobuf";
import { messageOf } from "@protoport/gateway/errors";
import { unsupportedOpenApiOptions } from "@protoport/gateway/openapi";
import { type RestBinding, type RestOptions, checkRestRoutes } from "@protoport/gateway/rest";
import { checkTools, type CheckedTools } from "./check-tools.ts";

/** The routes and problems that a gateway with some services would have. */
export interface CheckResult {
  readonly services: readonly DescService[];
  /** The bindings of all valid rules. */
  readonly bindings: readonly RestBinding[];
  /** The problems for which `createGateway` would throw. Empty if the gateway would start. */
  readonly problems: readonly string[];
  /** The `openapiv2_*` fields that OpenAPI documents do not use, each with the descriptors that set the field. */
  readonly unsupportedOptions: ReadonlyMap<string, readonly string[]>;
  /** The tools for AI agents, or `undefined` without tool selectors. */
  readonly tools: CheckedTools | undefined;
}

/** Checks services with REST options. @param selectors - select the RPCs that are tools for AI agents */
export async function checkServices(
  services: readonly DescService[],
  rest: RestOptions,
  selectors: readonly string[],
): Promise<CheckResult> {
  const methods = services.flatMap((service) => service.methods);
  const { bindings } = checkRestRoutes(methods, rest).routes;
  const unsupportedOptions = unsupportedOpenApiOptions(services);
  const tools = selectors.length === 0 ? undefined : await checkTools(selectors, methods);
  return { services, bindings, problems: await problemsOf(services, rest), unsupportedOptions, tools };
}

async function problemsOf(services: readonly DescService[], rest: RestOptions): Promise<readonly string[]> {
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
