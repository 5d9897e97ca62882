import { createRequire } from "node:module";
import { join } from "node:path";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { type ConnectRouter, type ContextKey, createContextKey, type ServiceImpl } from "@connectrpc/connect";
import { projectFolder } from "../../../../testing/src/process/child-program.ts";

/** The folders with each framework's oldest and newest supported major version. */
export const folders: Readonly<Record<"oldest" | "newest", string>> = {
  oldest: join(projectFolder, "protoport/frameworks/test/suites/frameworks/oldest"),
  newest: join(projectFolder, "protoport/examples/frameworks"),
};

/** The folder with plugins for Fastify, and with middleware for Express. */
export const pluginFolder: string = join(projectFolder, "protoport/frameworks/test/suites/frameworks/plugins");

/** Returns a function that loads a plugin for a Fastify version by its name without the scope. */
export function pluginsOfFastify(version: string): (name: string) => unknown {
  const require = requireFrom(pluginFolder);
  return (name) => require(version === "oldest" ? `@fastify-4/${name}` : `@fastify/${name}`);
}

/** Returns a folder's `require`. The types are checked in `oldest/types.ts` and in protoport/examples/frameworks. */
export const requireFrom = (folder: string): NodeJS.Require => createRequire(join(folder, "package.json"));

export function greenhouse(implementation: Partial<ServiceImpl<typeof GreenhouseService>>): {
  routes(router: ConnectRouter): void;
} {
  return { routes: (router) => void router.service(GreenhouseService, implementation) };
}

/** The key under which middleware stores what it knows about a caller. */
export const noteKey: ContextKey<string> = createContextKey("");

export const pathOf = (rpc: string): string => `/${GreenhouseService.typeName}/${rpc}`;
