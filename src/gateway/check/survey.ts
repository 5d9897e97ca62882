import type { DescService } from "@bufbuild/protobuf";
import { type RestBinding, type RestOptions, surveyRestRoutes } from "../rest/index.ts";
import { adviceFor } from "./advice.ts";
import { type Difference, differences, type Peer } from "./differences.ts";
import { messageOf } from "../errors/index.ts";
import type { SwitchName } from "./rest-switches.ts";

/** What a gateway with some services would be. */
export interface Survey {
  readonly services: readonly DescService[];
  /** The bindings of all rules that nothing is wrong with. */
  readonly bindings: readonly RestBinding[];
  /** What it would refuse at its start. */
  readonly refusals: readonly { readonly problem: string; readonly advice: string | undefined }[];
  /** What is otherwise than with the peers, for which bindings. */
  readonly differences: readonly { readonly difference: Difference; readonly bindings: readonly RestBinding[] }[];
}

/** Surveys services under options, some of which are switched on by name. */
export async function survey(
  services: readonly DescService[],
  rest: RestOptions,
  { switches, from }: { readonly switches: ReadonlySet<SwitchName>; readonly from: readonly Peer[] },
): Promise<Survey> {
  const methods = services.flatMap((service) => service.methods);
  const { bindings } = surveyRestRoutes(methods, rest).routes;
  const isAsBefore = (difference: Difference): boolean => difference.switches.some((name) => switches.has(name));
  const concerned = differences
    .filter((difference) => difference.from.some((peer) => from.includes(peer)) && !isAsBefore(difference))
    .map((difference) => ({ difference, bindings: bindings.filter(difference.concerns) }));
  return {
    services,
    bindings,
    refusals: (await problemsOf(services, rest)).map((problem) => ({ problem, advice: adviceFor(problem) })),
    differences: concerned.filter((found) => found.bindings.length > 0),
  };
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
