import { createRequire } from "node:module";

/** Returns the prototype of descriptors in a CommonJS program, which loads the CommonJS build of protobuf-es. */
export function commonJsPrototype(): unknown {
  // A bundle in CommonJS has no `import.meta`.
  const require = createRequire(import.meta.url ?? __filename);
  const protobuf: typeof import("@bufbuild/protobuf") = require("@bufbuild/protobuf");
  const wellKnown: typeof import("@bufbuild/protobuf/wkt") = require("@bufbuild/protobuf/wkt");
  return Object.getPrototypeOf(protobuf.create(wellKnown.FileDescriptorProtoSchema));
}
