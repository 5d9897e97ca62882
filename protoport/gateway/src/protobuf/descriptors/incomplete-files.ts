import type { DescFile, DescService } from "@bufbuild/protobuf";
import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { withCode } from "../../http/index.ts";
import { filesOf } from "./files-of.ts";

/** The property of marked files. Not a unique symbol, because a program may load two copies of this module. */
const incompleteKey = Symbol.for("@protoport/gateway/incomplete");

/** Marks a file that lacks the custom options of services, messages, fields and enums, as from `@grpc/proto-loader`. */
export function markIncomplete(file: FileDescriptorProto): void {
  Object.defineProperty(file, incompleteKey, { value: true, enumerable: true });
}

/**
 * Refuses marked files, because an option of the gateway would ignore the rules that they lack.
 *
 * @param described - the services and types in the files
 * @param option - the option's name
 * @throws TypeError that names the first service in a marked file
 */
export function refuseIncomplete(
  described: Iterable<{ readonly file: DescFile }>,
  option: "validation" | "visibility",
): void {
  const incomplete = [...filesOf(described)].filter(({ proto }) => incompleteKey in proto);
  if (incomplete.length === 0) return;
  const [service]: readonly DescService[] = incomplete.flatMap(({ services }) => services);
  const name = service?.typeName ?? incomplete.map(({ proto }) => proto.name).join(", ");
  const problem =
    `option "${option}": the definition of ${name} lacks the rules of services, messages, fields and enums, because ` +
    "@grpc/proto-loader drops them; set descriptors of addGrpcJsService, addNiceGrpcService or createGatewayStrategy";
  throw withCode(new TypeError(problem), "ERR_DESCRIPTORS");
}
