// The parts of Deno and Bun that the examples use, so that they are type-checked without the types of either.

declare const Deno: {
  readonly args: readonly string[];
  serve(
    options: { readonly hostname: string; readonly port: number },
    handler: (
      request: Request,
      info: { readonly remoteAddr: { readonly hostname: string; readonly port: number } },
    ) => Response | Promise<Response>,
  ): unknown;
};

interface BunServer {
  readonly url: URL;
  requestIP(request: Request): { readonly address: string; readonly port: number } | null;
}

declare const Bun: {
  serve(options: {
    readonly hostname: string;
    readonly port: number;
    readonly idleTimeout: number;
    readonly fetch: (request: Request, server: BunServer) => Response | Promise<Response>;
  }): BunServer;
};
