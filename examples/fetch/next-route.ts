// The greenhouse as a route handler of Next, in app/[...path]/route.ts. In app/api/[...path]/route.ts, the gateway would
// have `requestPathPrefix: "/api"`.
import { gateway } from "./gateway.ts";

const handle = (request: Request): Promise<Response> => gateway.fetch(request);

export { handle as DELETE, handle as GET, handle as HEAD, handle as PATCH, handle as POST, handle as PUT };
