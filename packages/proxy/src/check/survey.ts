import type { DescService } from "@bufbuild/protobuf";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { type RestBinding, type RestOptions, surveyRestRoutes } from "@plantstore/gateway/rest";

/** What a gateway with some services would be. */
export interface Survey {
  readonly services: readonly DescService[];
  /** The bindings of all rules that nothing is wrong with. */
  readonly bindings: readonly RestBinding[];
  /** Why `createGateway` would throw, one problem each; empty if the gateway would start. */
  readonly problems: readonly string[];
}

/** Surveys services under options. */
export async function survey(services: readonly DescService[], rest: RestOptions): Promise<Survey> {
  const methods = services.flatMap((service) => service.methods);
  const { bindings } = surveyRestRoutes(methods, rest).routes;
  return { services, bindings, problems: await problemsOf(services, rest) };
}

/** Returns what the gateway itself refuses. */
async function problemsOf(services: readonly DescService[], rest: RestOptions): Promise<readonly string[]> {
  // Imported here, so that the package has its main entry in one file, which nothing else shares.
  const { createGateway } = await import("@plantstore/gateway");
  try {
    createGateway({ routes: (router) => services.forEach((service) => router.service(service, {})), rest });
    return [];
  } catch (error) {
    // Its first line says only that the others are about rules.
    const [first = "", ...others] = messageOf(error).split("\n");
    return others.length === 0 ? [first] : others;
  }
}
