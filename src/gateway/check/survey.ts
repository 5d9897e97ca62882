import type { DescService } from "@bufbuild/protobuf";
import { messageOf } from "../errors/index.ts";
import { type RestBinding, type RestOptions, surveyRestRoutes } from "../rest/index.ts";

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
  const { createGateway } = await import("../index.ts");
  try {
    createGateway({ routes: (router) => services.forEach((service) => router.service(service, {})), rest });
    return [];
  } catch (error) {
    // Its first line says only that the others are about rules.
    const [first = "", ...others] = messageOf(error).split("\n");
    return others.length === 0 ? [first] : others;
  }
}
