import { join } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import type { ServiceDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { Edition } from "@bufbuild/protobuf/wkt";
import { projectFolder } from "../../../../../testing/src/process/child-program.ts";
import type { GrpcJsOptions } from "../../../../src/grpc-js.ts";
import { generateTsProto } from "../../../generate-ts-proto.ts";

export interface Library extends Disposable {
  /** Returns a service's definition, and the options that it needs. */
  describe(service: DescService): Promise<{ readonly definition: ServiceDefinition; readonly options: GrpcJsOptions }>;
}

const folders = ["protoport/testing/proto", "protoport/conformance/proto", "protoport/gateway/proto"];
const includeDirs = folders.map((folder) => join(projectFolder, folder));

export const libraries: Readonly<Record<"ts-proto" | "ts-proto with messages" | "proto-loader", () => Library>> = {
  "ts-proto": () => tsProto(false),
  "ts-proto with messages": () => tsProto(true),
  "proto-loader": () => ({
    async describe({ file, typeName }) {
      const loaded = loadSync(`${file.name}.proto`, { includeDirs, longs: String });
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of proto-loader allow messages here.
      const definition = loaded[typeName] as ServiceDefinition;
      // proto-loader omits field presence in proto2.
      return { definition, options: file.edition === Edition.EDITION_PROTO2 ? { descriptors: file } : {} };
    },
    [Symbol.dispose]: () => {},
  }),
};

function tsProto(withMessages: boolean): Library {
  const options = ["outputServices=grpc-js", "forceLong=bigint", `useDate=${withMessages ? "false" : "true"}`];
  const code = generateTsProto(includeDirs, options);
  return {
    async describe({ file, name }) {
      const generated: Readonly<Record<string, ServiceDefinition>> = await import(join(code.folder, `${file.name}.ts`));
      return {
        definition: generated[`${name}Service`] ?? {},
        options: { descriptors: file, ...(withMessages ? { messages: generated } : {}) },
      };
    },
    [Symbol.dispose]: () => code[Symbol.dispose](),
  };
}
