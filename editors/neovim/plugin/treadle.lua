-- The commands of Treadle in Neovim.

if vim.fn.has("nvim-0.10") == 0 then return vim.notify("Treadle needs Neovim 0.10.", vim.log.levels.ERROR) end

local command = vim.api.nvim_create_user_command

command("Treadle", function(given)
  local treadle = require("treadle")
  if given.args == "" then return treadle.open() end
  local lines = given.range > 0 and { treadle.lines(0, given.line1, given.line2) } or nil
  treadle.send(given.args, lines)
end, { nargs = "*", range = true, desc = "Give Treadle a task, with the lines of the range" })

command("TreadleAnswer", function(given)
  local number, comment = given.args:match("^(%d+)%s*(.*)$")
  if not number then return vim.notify("TreadleAnswer takes a number, and a comment if you like.", vim.log.levels.ERROR) end
  require("treadle").answer(tonumber(number), comment)
end, { nargs = "+", desc = "Answer the question that waits" })

command("TreadleDiff", function() require("treadle").diff() end, { desc = "Show the change that waits" })
command("TreadleStop", function() require("treadle").stop() end, { desc = "Stop what Treadle does" })
command("TreadleNew", function() require("treadle").new() end, { desc = "Begin a new session" })
command("TreadleResume", function(given) require("treadle").resume(given.args) end, { nargs = "?", desc = "Continue a session" })
command("TreadleMode", function(given) require("treadle").mode(given.args) end, {
  nargs = 1,
  complete = function() return require("treadle").modes() end,
  desc = "Change the mode",
})
