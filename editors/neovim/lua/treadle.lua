-- Treadle in Neovim: a chat beside the files, and each change in a diff before it is applied.

local M = {
  command = { "treadle", "acp" }, -- the program, and flags after `acp`
}

local METHOD_NOT_FOUND, INTERNAL_ERROR, AUTH_REQUIRED = -32601, -32603, -32000
local DONE = { completed = "✓", failed = "✗" }

local agent -- the process, with the requests that wait for an answer; nil where none runs
local session -- its id, whether a turn runs, and the calls that were shown
local asked = {} -- the questions that wait, first the one that was put first
local read_at = {} -- for each buffer that the agent read: its state then
local chat -- the buffer
local spoke -- who wrote last in it

-- The chat

local function chat_buffer()
  if chat and vim.api.nvim_buf_is_valid(chat) then return chat end
  chat = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(chat, "treadle://chat")
  vim.bo[chat].filetype = "markdown"
  vim.bo[chat].bufhidden = "hide"
  for number = 1, 9 do
    vim.keymap.set("n", tostring(number), function() M.answer(number) end, { buffer = chat, desc = "Give this answer" })
  end
  return chat
end

local function append(text)
  local buffer = chat_buffer()
  local last = vim.api.nvim_buf_get_lines(buffer, -2, -1, false)[1] or ""
  local lines = vim.split(last .. text, "\n", { plain = true })
  vim.api.nvim_buf_set_lines(buffer, -2, -1, false, lines)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
end

-- Write what somebody says; `who` is you, agent, or what else is shown by itself.
local function say(who, text)
  local first = vim.deep_equal(vim.api.nvim_buf_get_lines(chat_buffer(), 0, -1, false), { "" })
  if spoke ~= who then append((first and "" or "\n\n") .. (who == "you" and "## " or "")) end
  spoke = who
  append(text)
end

local function beside(text)
  spoke = nil
  say("beside", text)
end

local function note(text) beside("> " .. vim.trim(text):gsub("\n", "\n> ")) end

function M.open()
  local buffer = chat_buffer()
  if #vim.fn.win_findbuf(buffer) > 0 then return end
  local before = vim.api.nvim_get_current_win()
  vim.cmd("botright vertical sbuffer " .. buffer)
  vim.wo.wrap = true
  vim.wo.linebreak = true
  vim.api.nvim_set_current_win(before)
end

-- Files: what is typed and not saved is what the agent reads, and what it writes goes through the buffer

local function open_buffer(path)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) == path then
      return buffer
    end
  end
end

local function text_of(buffer)
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  if #lines == 1 and lines[1] == "" then return "" end
  return table.concat(lines, "\n") .. ((vim.bo[buffer].endofline or vim.bo[buffer].fixendofline) and "\n" or "")
end

local function current_text(path)
  local buffer = open_buffer(path)
  if buffer then return text_of(buffer) end
  local file = io.open(path, "rb")
  if not file then return "" end
  local text = file:read("*a")
  file:close()
  return text
end

local function unix(text) return (text:gsub("\r\n", "\n")) end

local function lines_of(text)
  local lines = vim.split(text, "\n", { plain = true })
  local ends = lines[#lines] == ""
  if ends then lines[#lines] = nil end
  return lines, ends
end

local function read_file(params)
  local buffer = open_buffer(params.path)
  if not buffer then return nil, { code = INTERNAL_ERROR, message = "The file is not open in the editor." } end
  read_at[buffer] = vim.b[buffer].changedtick
  return { content = text_of(buffer) }
end

local function write_file(params)
  local buffer = open_buffer(params.path)
  if not buffer then return nil, { code = METHOD_NOT_FOUND, message = "The file is not open in the editor." } end
  if read_at[buffer] and read_at[buffer] ~= vim.b[buffer].changedtick then
    return nil, { code = INTERNAL_ERROR, message = "that the user typed in the file in the meantime" }
  end
  local lines, ends = lines_of(vim.bo[buffer].fileformat == "dos" and unix(params.content) or params.content)
  local old = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local head, tail = 0, 0
  while head < #old and head < #lines and old[head + 1] == lines[head + 1] do head = head + 1 end
  while tail < #old - head and tail < #lines - head and old[#old - tail] == lines[#lines - tail] do tail = tail + 1 end
  vim.api.nvim_buf_set_lines(buffer, head, #old - tail, false, vim.list_slice(lines, head + 1, #lines - tail))
  vim.bo[buffer].endofline = ends
  if not ends then vim.bo[buffer].fixendofline = false end
  local saved, why = pcall(vim.api.nvim_buf_call, buffer, function() vim.cmd("silent write") end)
  if not saved then return nil, { code = INTERNAL_ERROR, message = "that the file could not be saved: " .. why } end
  read_at[buffer] = vim.b[buffer].changedtick
  return vim.empty_dict()
end

-- A change before it is applied: the file on the left, what is proposed on the right, where it can be edited

local function proposed_text(base, places)
  local lines, out, at = vim.split(base, "\n", { plain = true }), {}, 1
  for _, place in ipairs(places) do
    local old, made = unix(place.oldText or ""), unix(place.newText or "")
    local first, count = place._meta.treadle.oldLine, #vim.split(old, "\n", { plain = true }) - 1
    if not vim.endswith(old, "\n") and old ~= "" then count = count + 1 end
    if table.concat(vim.list_slice(lines, first, first + count - 1), "\n") ~= old:gsub("\n$", "") then return nil end
    vim.list_extend(out, vim.list_slice(lines, at, first - 1))
    vim.list_extend(out, (lines_of(made)))
    at = first + count
    if at > #lines and vim.endswith(made, "\n") then out[#out + 1] = "" end
  end
  vim.list_extend(out, vim.list_slice(lines, at, #lines))
  return table.concat(out, "\n")
end

local function scratch(name, text, kind)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, (lines_of(text)))
  vim.bo[buffer].filetype = kind or ""
  vim.bo[buffer].bufhidden = "hide"
  return buffer
end

local function review(question)
  local places, path = {}, nil
  for _, block in ipairs(question.params.toolCall.content or {}) do
    if block.type == "diff" then
      if path and path ~= block.path then return nil end -- of several files the chat shows the whole diff
      path = block.path
      places[#places + 1] = block
    end
  end
  if not path then return nil end
  local base = unix(current_text(path))
  local made = proposed_text(base, places)
  if not made then return nil end
  local kind = vim.filetype.match({ filename = path })
  local name = ("treadle://%s/%s"):format(question.id, vim.fs.basename(path))
  local left, right = scratch(name .. " (now)", base, kind), scratch(name .. " (proposed)", made, kind)
  vim.bo[left].modifiable = false
  return { base = base, made = made, left = left, right = right, ends = vim.endswith(made, "\n") }
end

--- Show the change that waits, also again after its tab was closed.
function M.diff()
  local question = asked[1]
  if not (question and question.review) then return vim.notify("No change waits.") end
  vim.cmd("tab sbuffer " .. question.review.left)
  vim.cmd("diffthis | rightbelow vertical sbuffer " .. question.review.right .. " | diffthis")
  local answers = {}
  for number, option in ipairs(question.params.options) do answers[number] = ("%d %s"):format(number, option.name) end
  vim.wo.winbar = (":TreadleAnswer " .. table.concat(answers, " · ")):gsub("%%", "%%%%")
end

local function reviewed(one)
  local text = table.concat(vim.api.nvim_buf_get_lines(one.right, 0, -1, false), "\n") .. (one.ends and "\n" or "")
  if text ~= one.made then return { oldText = one.base, newText = text } end
end

local function close_review(one)
  for _, buffer in ipairs({ one.left, one.right }) do
    if vim.api.nvim_buf_is_valid(buffer) then vim.api.nvim_buf_delete(buffer, { force = true }) end
  end
end

-- The agent

local function send(message)
  message.jsonrpc = "2.0"
  agent.process:write(vim.json.encode(message) .. "\n")
end

local function ask(method, params, done)
  agent.number = agent.number + 1
  agent.waiting[agent.number] = done or function(error) if error then note(error.message) end end
  send({ id = agent.number, method = method, params = params })
end

-- Show the question that waits longest: it is the one that is answered.
local function show_question()
  local question = asked[1]
  if not question or question.shown then return end
  question.shown = true
  local params = question.params
  M.open()
  local about = params.toolCall._meta and params.toolCall._meta.treadle or {}
  local title = "**" .. (params.toolCall.title or "") .. "**"
  local lines = { (about.agent and about.agent .. ": " or "") .. title }
  for _, block in ipairs(params.toolCall.content or {}) do
    if block.type == "diff" then
      local made = vim.diff(block.oldText or "", block.newText or "", { ctxlen = 3 })
      lines[#lines + 1] = block.path .. "\n```diff\n" .. made .. "```"
    elseif block.content and block.content.text then
      local text = block.content.text
      lines[#lines + 1] = vim.trim(vim.startswith(text, title) and text:sub(#title + 1) or text)
    end
  end
  for number, option in ipairs(params.options) do lines[#lines + 1] = ("%d. %s"):format(number, option.name) end
  lines[#lines + 1] = "(:TreadleAnswer NUMBER [COMMENT], or the number in this window)"
  beside(table.concat(lines, "\n"))
  question.review = review(question)
  question.editable = about.editable
  if question.review then M.diff() end
end

local function title_of(update)
  local known = session.calls[update.toolCallId]
  if update.title then session.calls[update.toolCallId] = update.title end
  return update.title or known or update.toolCallId
end

local UPDATES = {
  agent_message_chunk = function(update) say("agent", update.content.text or "") end,
  agent_thought_chunk = function(update) note(update.content.text or "") end,
  user_message_chunk = function(update) say("you", update.content.text or "[image]") end,
  usage_update = function(update)
    local cost = update.cost and (" · $%.2f"):format(update.cost.amount) or ""
    vim.g.treadle_status = ("%d%%%s"):format(100 * update.used / update.size, cost)
  end,
  plan = function(update)
    local lines = vim.tbl_map(function(one) return (one.status == "completed" and "☑ " or "☐ ") .. one.content end, update.entries)
    note(table.concat(lines, "\n"))
  end,
}

local function call(update)
  local title = title_of(update)
  if not DONE[update.status] then return end
  say("call", (spoke == "call" and "\n" or "") .. DONE[update.status] .. " " .. title)
  vim.cmd("silent! checktime") -- files that are open, and that it wrote on the disk
end

UPDATES.tool_call, UPDATES.tool_call_update = call, call

local REQUESTS = { ["fs/read_text_file"] = read_file, ["fs/write_text_file"] = write_file }

local function over(question)
  for number, one in ipairs(asked) do
    if one == question then table.remove(asked, number) end
  end
  if question.review then close_review(question.review) end
  vim.schedule(show_question)
end

local function take(message)
  if message.method == "session/update" then
    local show = UPDATES[message.params.update.sessionUpdate]
    if show and session and message.params.sessionId == session.id then show(message.params.update) end
  elseif message.method == "session/request_permission" then
    asked[#asked + 1] = { id = message.id, params = message.params }
    show_question()
  elseif message.method == "$/cancel_request" then
    for _, question in ipairs({ unpack(asked) }) do
      if question.id == message.params.requestId then over(question) end
    end
  elseif message.method and message.id then
    local does = REQUESTS[message.method]
    local result, error = nil, { code = METHOD_NOT_FOUND, message = "There is no " .. message.method .. "." }
    if does then result, error = does(message.params) end
    send({ id = message.id, result = result, error = not result and error or nil })
  elseif message.id and agent.waiting[message.id] then
    local done = agent.waiting[message.id]
    agent.waiting[message.id] = nil
    done(message.error, message.result)
  end
end

local function ended(this, code, said)
  if agent ~= this then return end
  agent = nil
  local gone = asked
  asked = {}
  for _, question in ipairs(gone) do over(question) end
  if session then session.running = false end
  note(("The agent is not running (%s).%s `:Treadle` starts it again."):format(code, said ~= "" and " " .. said or ""))
end

local function start(ready)
  if agent then return ready() end
  local this, rest, said = { waiting = {}, number = 0 }, "", ""
  local function out(_, data)
    local lines = vim.split(rest .. (data or ""), "\n", { plain = true })
    rest = table.remove(lines)
    for _, line in ipairs(lines) do
      local read, message = pcall(vim.json.decode, line, { luanil = { object = true, array = true } })
      if read and type(message) == "table" then vim.schedule(function() if agent == this then take(message) end end) end
    end
  end
  local on_exit = vim.schedule_wrap(function(left) ended(this, left.signal ~= 0 and "signal " .. left.signal or "status " .. left.code, vim.trim(said)) end)
  local options = { stdin = true, stdout = out, stderr = function(_, data) said = (said .. (data or "")):sub(-2000) end }
  local begun, process = pcall(vim.system, M.command, options, on_exit)
  if not begun then return vim.notify("Treadle could not be started: " .. process, vim.log.levels.ERROR) end
  this.process = process
  agent = this
  vim.api.nvim_create_autocmd("VimLeavePre", { callback = function() process:write(nil) end })
  local able = { fs = { readTextFile = true, writeTextFile = true } }
  ask("initialize", { protocolVersion = 1, clientInfo = { name = "treadle.nvim", version = "1" }, clientCapabilities = able }, function(error)
    if error then return note(error.message) end
    ready()
  end)
end

local function enter(id, ready)
  local params = { cwd = vim.fn.getcwd(), mcpServers = {}, sessionId = id }
  local this = { id = id, calls = {}, running = false, opening = agent, waits = { ready } }
  session = this
  if id then
    vim.api.nvim_buf_set_lines(chat_buffer(), 0, -1, false, {})
    spoke = nil
  end
  ask(id and "session/load" or "session/new", params, function(error, opened)
    if error then
      if session == this then session = nil end
      return note(error.message .. (error.code == AUTH_REQUIRED and " Run `treadle start` in a terminal." or ""))
    end
    this.id = id or opened.sessionId
    this.modes = vim.tbl_map(function(mode) return mode.id end, opened.modes and opened.modes.availableModes or {})
    this.agent, this.opening = agent, nil
    for _, does in ipairs(this.waits) do does() end
  end)
end

-- Do something in the session: opened, or opened again where the agent had gone.
local function in_session(ready)
  start(function()
    if session and session.agent == agent then return ready() end
    if session and session.opening == agent then return table.insert(session.waits, ready) end
    enter(session and session.id, ready)
  end)
end

function M.send(text, blocks)
  M.open()
  in_session(function()
    local prompt = vim.list_extend({ { type = "text", text = text } }, blocks or {})
    say("you", text)
    if session.running then -- it comes in at the model's next step
      return ask("_session/steering", { sessionId = session.id, prompt = prompt })
    end
    session.running = true
    ask("session/prompt", { sessionId = session.id, prompt = prompt }, function(error, answer)
      session.running = false
      if error then return note(error.message) end
      note("Done" .. (answer.stopReason ~= "end_turn" and ": " .. answer.stopReason or "") .. ".")
    end)
  end)
end

--- Answer the question that waits longest: with the number of an option and, if wanted, a comment.
function M.answer(number, comment)
  local question = asked[1]
  if not question then return vim.notify("Nothing is asked.") end
  local option = question.params.options[number]
  if not option then return vim.notify(("There is no answer %d."):format(number), vim.log.levels.ERROR) end
  local said = { comment = comment ~= "" and comment or nil }
  if question.review and question.editable and vim.startswith(option.kind, "allow") then said.edited = reviewed(question.review) end
  local outcome = { outcome = "selected", optionId = option.optionId, _meta = next(said) and { treadle = said } or nil }
  over(question)
  beside("→ " .. option.name .. (comment and comment ~= "" and ": " .. comment or ""))
  send({ id = question.id, result = { outcome = outcome } })
end

function M.stop()
  if not (agent and session) then return end
  local gone = asked
  asked = {}
  for _, question in ipairs(gone) do
    over(question)
    send({ id = question.id, result = { outcome = { outcome = "cancelled" } } })
  end
  send({ method = "session/cancel", params = { sessionId = session.id } })
end

function M.new()
  session = nil
  M.open()
  in_session(function() note("A new session.") end)
end

function M.resume(id)
  M.open()
  start(function()
    if id and id ~= "" then return enter(id, function() end) end
    ask("session/list", { cwd = vim.fn.getcwd() }, function(error, found)
      if error then return note(error.message) end
      local show = { prompt = "Continue", format_item = function(one) return one.title or one.sessionId end }
      vim.ui.select(found.sessions, show, function(one) if one then enter(one.sessionId, function() end) end end)
    end)
  end)
end

function M.mode(name)
  in_session(function() ask("session/set_mode", { sessionId = session.id, modeId = name }, function(error) note(error and error.message or "Mode " .. name .. ".") end) end)
end

function M.modes() return session and session.modes or {} end

--- Lines of a buffer, saved or not, as something that goes along with a message.
function M.lines(buffer, first, last)
  local uri = ("%s#L%d-L%d"):format(vim.uri_from_bufnr(buffer), first, last)
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, first - 1, last, false), "\n") .. "\n"
  return { type = "resource", resource = { uri = uri, mimeType = "text/plain", text = text } }
end

function M.setup(options)
  M.command = options and options.command or M.command
end

return M
