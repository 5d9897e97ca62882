import type { ConnectRouterOptions } from "@connectrpc/connect";
import type { UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { memoize } from "../protobuf/index.ts";
import { createMethodCodecs, type RestOptions } from "../protocols/index.ts";
import type { RpcPlatform } from "./create-rpcs.ts";

const noCodegen = { codegen: false } as const;

/** Returns options and platform for a gateway that generates no code, even for services with separate options. */
export function withoutCodegen<
  Options extends ConnectRouterOptions & { readonly rest?: RestOptions },
  Platform extends RpcPlatform,
>(options: Options, platform: Platform): readonly [Options, Platform] {
  const { createCodecs = createMethodCodecs } = platform;
  // The result is cached per options object, because JSON writers are cached by their options object.
  const withFormats = memoize((own: UniversalHandlerOptions) => ({
    ...own,
    binaryOptions: { ...own.binaryOptions, ...noCodegen },
    jsonOptions: { ...own.jsonOptions, ...noCodegen },
  }));
  const jsonOptions = { ...options.jsonOptions, ...noCodegen };
  const rest = { ...options.rest, json: { ...options.rest?.json, ...noCodegen } };
  return [
    { ...options, jsonOptions, rest },
    { ...platform, createCodecs: (method, own, rules) => createCodecs(method, withFormats(own), rules) },
  ];
}
