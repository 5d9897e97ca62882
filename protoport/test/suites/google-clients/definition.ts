import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createFileRegistry, type DescService, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { ExternalHttpRule } from "../../../gateway/src/index.ts";
import { buildStep, createTempFolder, projectFolder } from "@protoport/testing";

/** The suite's folder, in which its npm packages are installed. */
export const suiteFolder: string = join(projectFolder, "protoport/test/suites/google-clients");

/** The npm packages with the API definitions and their imports. */
const packages = ["google-gax", "@google-cloud/tasks", "@google-cloud/firestore-api"];
/** The definition folders that are built, in addition to their imports. */
const built = ["cloud/tasks", "firestore", "cloud/location", "longrunning", "rpc"];

/** Builds the definitions that Google's clients for Node contain. */
export async function readDefinition(): Promise<FileRegistry> {
  using folder = createTempFolder();
  for (const name of packages) {
    const protos = join(suiteFolder, "node_modules", name, "build/protos/google");
    cpSync(protos, folder.file("google"), { recursive: true, filter: (path) => !/\.(js|json|ts)$/.test(path) });
  }
  const output = folder.file("google.binpb");
  const paths = built.flatMap((path) => ["--path", folder.file(`google/${path}`)]);
  await buildStep("buf", ["build", folder.path, ...paths, "--output", output]);
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(output)));
}

/** A service with a client, and a service that several APIs have, whose RPCs the client offers too. */
export type ClientService = { readonly service: DescService; readonly mixin: DescService };

/** Returns the two APIs' services. Each has a client. */
export function clientServices(definition: FileRegistry): readonly ClientService[] {
  const services = [...definition].filter((type) => type.kind === "service");
  const locations = services.filter(({ typeName }) => typeName === "google.cloud.location.Locations");
  const operations = services.filter(({ typeName }) => typeName === "google.longrunning.Operations");
  const tasks = services.filter(({ typeName }) => typeName.startsWith("google.cloud.tasks."));
  const firestore = services.filter(({ typeName }) => typeName.startsWith("google.firestore."));
  return [
    ...tasks.flatMap((service) => locations.map((mixin) => ({ service, mixin }))),
    ...firestore.flatMap((service) => operations.map((mixin) => ({ service, mixin }))),
  ];
}

const operation = "/v1/{name=projects/*/databases/*/operations/*}";

/** Returns a GET rule with a path in each version of Cloud Tasks. */
function getInEachVersion(selector: string, path: string): ExternalHttpRule {
  const pattern = (version: string) => ({ pattern: { case: "get" as const, value: `/${version}/${path}` } });
  return { selector, ...pattern("v2"), additionalBindings: [pattern("v2beta2"), pattern("v2beta3")] };
}

/** Rules that replace annotations. */
export const configRules: readonly ExternalHttpRule[] = [
  // Several APIs have these services, with different paths. The clients contain their API's paths.
  getInEachVersion("google.cloud.location.Locations.ListLocations", "{name=projects/*}/locations"),
  getInEachVersion("google.cloud.location.Locations.GetLocation", "{name=projects/*/locations/*}"),
  {
    selector: "google.longrunning.Operations.ListOperations",
    pattern: { case: "get", value: "/v1/{name=projects/*/databases/*}/operations" },
  },
  {
    selector: "google.longrunning.Operations.GetOperation",
    pattern: { case: "get", value: operation },
    additionalBindings: [{ pattern: { case: "get", value: "/v2beta3/{name=projects/*/locations/*/operations/*}" } }],
  },
  { selector: "google.longrunning.Operations.DeleteOperation", pattern: { case: "delete", value: operation } },
  {
    selector: "google.longrunning.Operations.CancelOperation",
    pattern: { case: "post", value: `${operation}:cancel` },
    body: "*",
  },
  // Documents have an even number of segments after `documents`, and document lists an odd one. The annotation for
  // lists matches both, so GetDocument would never be reached.
  {
    selector: "google.firestore.v1.Firestore.ListDocuments",
    pattern: { case: "get", value: "/v1/{parent=projects/*/databases/*/documents}/{collection_id}" },
    additionalBindings: [
      { pattern: { case: "get", value: "/v1/{parent=projects/*/databases/*/documents/*/*}/{collection_id}" } },
    ],
  },
];
