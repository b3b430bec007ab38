/** The settings in force: `/setting`. */
import { SETTING_SOURCES } from "../../config.ts"
import type { Routes } from "../context.ts"
import { operation } from "../operation.ts"
import { Type } from "../schema.ts"

const SettingOut = Type.Named(
  "SettingOut",
  Type.Object({
    name: Type.String(),
    value: Type.Nullable(
      Type.String({ description: "As posthorn config shows it; a secret is `set`. Null when it has none." }),
    ),
    source: Type.Enum(SETTING_SOURCES as unknown as string[]),
    description: Type.String(),
  }),
)

export const settingRoutes: Routes = (app, { settings }) => {
  app.get(
    "/setting",
    operation("v1.setting.list", "The settings that this server was started with, and where they came from", {
      auth: "operator",
      description:
        "Without secrets and passwords. A worker, and another server on the same store, has settings of its own.",
      tags: ["Setting"],
      response: { 200: Type.Named("ListResponseSettingOut", Type.Object({ data: Type.Array(SettingOut) })) },
    }),
    async () => ({ data: [...settings] }),
  )
}
