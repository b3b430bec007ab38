/** The keys, shown by `?`. */
import { isHelpOpen } from "./keyboard.ts"
import type { MenuGroup } from "./navigation.ts"
import { Dialog } from "./ui/dialog.tsx"

const KEYS = [
  ["/", "Search"],
  ["j", "Next row"],
  ["k", "Previous row"],
  ["Enter", "Open the row"],
  ["r", "Read again"],
  ["t", "Light, dark, or as the system"],
  ["?", "This help"],
] as const

export function Help({ menu }: { readonly menu: readonly MenuGroup[] }) {
  if (!isHelpOpen.value) return null
  const close = () => {
    isHelpOpen.value = false
  }
  return (
    <Dialog title="Keys" onClose={close}>
      <table>
        <tbody>
          {KEYS.map(([key, title]) => (
            <tr key={key}>
              <td>
                <kbd>{key}</kbd>
              </td>
              <td>{title}</td>
            </tr>
          ))}
          {menu
            .flatMap(({ items }) => items)
            .map(({ key, title }) => (
              <tr key={title}>
                <td class="nowrap">
                  <kbd>g</kbd> <kbd>{key}</kbd>
                </td>
                <td>{title}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </Dialog>
  )
}
