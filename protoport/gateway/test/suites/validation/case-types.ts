import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
// oxfmt-ignore
import { create, createFileRegistry, type DescMessage, type DescMethod, type DescMethodUnary, type FileRegistry,
  fromBinary, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { buildStep } from "../../../../testing/src/process/build-step.ts";

/** The module with the messages by which protovalidate implementations are tested. */
const casesModule = "github.com/bufbuild/protovalidate@v1.2.2";
const casesFolder = "proto/protovalidate-testing/buf/validate/conformance/cases";

/** The cases' message types, each with an RPC whose request it is. */
export interface CaseTypes {
  readonly registry: FileRegistry;
  readonly methods: readonly (DescMethod & DescMethodUnary)[];
  /** The file that contains the descriptors, for other programs. */
  readonly descriptorsFile: string;
}

/** Downloads and compiles the cases' definitions. */
export async function readCaseTypes(folder: string): Promise<CaseTypes> {
  const downloaded: { readonly Dir: string } = JSON.parse(
    await buildStep("go", ["mod", "download", "-json", casesModule], { folder }),
  );
  const modules = ["protovalidate", "protovalidate-testing"].map((name) => ({ path: `proto/${name}` }));
  const config = JSON.stringify({ version: "v2", modules });
  const descriptorsFile = join(folder, "cases.binpb");
  await buildStep("buf", ["build", "--config", config, "--path", casesFolder, "-o", descriptorsFile], {
    folder: downloaded.Dir,
  });
  const set = fromBinary(FileDescriptorSetSchema, readFileSync(descriptorsFile));
  const types = [...createFileRegistry(set)].filter((desc) => desc.kind === "message").filter(isCase);
  // Each type has its own file, because a gateway prepares all types to which its services' file refers.
  const file = { name: "verdict.proto", package: "judge", syntax: "proto3", messageType: [{ name: "Verdict" }] };
  const judges = types.map((type, at) => judgeOf(type, `Judge${String(at)}`));
  set.file.push(create(FileDescriptorProtoSchema, file), ...judges);
  writeFileSync(descriptorsFile, toBinary(FileDescriptorSetSchema, set));
  const registry = createFileRegistry(set);
  const methods = types.flatMap((_, at) => registry.getService(`judge.Judge${String(at)}`)?.methods ?? []);
  return { registry, descriptorsFile, methods: methods.filter(isUnary) };
}

/** Returns the file for a service with one RPC, whose request has this type. */
function judgeOf({ file, typeName }: DescMessage, name: string): FileDescriptorProto {
  return create(FileDescriptorProtoSchema, {
    name: `${name}.proto`,
    package: "judge",
    syntax: "proto3",
    dependency: [file.proto.name, "verdict.proto"],
    service: [{ name, method: [{ name: "Judge", inputType: `.${typeName}`, outputType: ".judge.Verdict" }] }],
  });
}

const isUnary = (method: DescMethod): method is DescMethod & DescMethodUnary => method.methodKind === "unary";

const isCase = ({ typeName, parent }: DescMessage): boolean =>
  typeName.startsWith("buf.validate.conformance.cases.") && parent === undefined;
